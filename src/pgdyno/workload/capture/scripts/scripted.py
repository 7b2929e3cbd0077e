"""A workload made of scripts of pgbench."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    Constant,
    Parameter,
    SameValue,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.literals import parameterised
from pgdyno.workload.capture.scripts.expression import Drawn, Source, Value
from pgdyno.workload.capture.scripts.script import ScriptStatement
from pgdyno.workload.capture.statements import TransactionPart, base_name, look_at

_APPROXIMATE = {
    "gaussian": "random_gaussian is drawn as with a parameter of 6",
    "pareto": "random_exponential is drawn so that four of five values are in the lowest fifth",
    "zipfian": "random_zipfian is drawn with an exponent of 0.8",
}


@dataclass(frozen=True)
class ReadScript:
    """A script as it was read, with its weight."""

    file: str
    weight: float
    statements: Sequence[ScriptStatement]


@dataclass
class ScriptedLoad:
    """Statements and transactions of scripts. ``is_read_only``: no statement may change rows."""

    statements: list[CapturedStatement] = field(default_factory=list)
    transactions: list[CapturedTransaction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_read_only: bool = True
    _names: dict[tuple[str, int], str] = field(default_factory=dict)
    _calls: Counter[str] = field(default_factory=Counter)

    def add(self, script: ReadScript) -> None:
        """Take a script. Raises: UsageError for one without statements, or with one that is not replayed."""
        times: Counter[str] = Counter()
        first: dict[Source, tuple[str, int, int]] = {}
        calls: list[CapturedCall] = []
        for one in script.statements:
            look = look_at(parameterised(one.sql).sql)
            if isinstance(look, str):
                raise UsageError(f'"{script.file}", line {one.line}: no workload can have this', detail=look)
            self.is_read_only &= look.is_read_only
            times[one.sql] += 1  # if a statement comes twice, two names tell parameters apart
            name = self._name(one.sql, times[one.sql], is_prepared=look.kind is TransactionPart.QUERY)
            self._calls[name] += round(script.weight)
            calls.append(CapturedCall(name, 1.0, tuple(self._parameters(name, one.values, first))))
        if not calls:
            raise UsageError(f'"{script.file}" has no statement')
        self.transactions.append(CapturedTransaction(script.weight, tuple(calls)))

    def counted(self) -> tuple[CapturedStatement, ...]:
        """Return the statements, with how often one run of all scripts calls each."""
        return tuple(replace(one, seen=Seen(self._calls[one.name], 0.0, 0, 0, 0)) for one in self.statements)

    def _name(self, sql: str, time: int, *, is_prepared: bool) -> str:
        if (sql, time) not in self._names:
            base, used = base_name(sql), set(self._names.values())
            numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(used) + 2))
            self._names[sql, time] = next(one for one in numbered if one not in used)
            self.statements.append(
                CapturedStatement(self._names[sql, time], sql, Seen(0, 0.0, 0, 0, 0), is_prepared)
            )
        return self._names[sql, time]

    def _parameters(
        self, name: str, values: Sequence[Value], first: dict[Source, tuple[str, int, int]]
    ) -> Iterator[Parameter]:
        """Yield parameters: a variable is drawn where it is used first, and is the same from then on."""
        for number, value in enumerate(values, 1):
            if not isinstance(value, Drawn):
                yield Constant(str(value))
            elif value.source in first:
                other, parameter, plus = first[value.source]
                yield SameValue(parameter, None if other == name else other, value.plus - plus)
            else:
                first[value.source] = name, number, value.plus
                between = value.source.between
                note = _APPROXIMATE.get(between.distribution)
                if note is not None and note not in self.notes:
                    self.notes.append(note)
                yield replace(between, low=between.low + value.plus, high=between.high + value.plus)
