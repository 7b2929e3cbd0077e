"""A workload made of pgbench scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from pgdyno.workload.capture.literals import divided, parameterised, with_variables
from pgdyno.workload.capture.scripts.expression import Drawn, ExpressionError, Source, Value, evaluate
from pgdyno.workload.capture.statements import TransactionPart, base_name, look_at

_META = re.compile(r"\s*\\(\w+|\S)\s*(.*)", re.DOTALL)
_SET = re.compile(r"(\w+)\s+(.+)", re.DOTALL)
_GOES_ON = re.compile(r"\\[ \t]*$")
_HINT = "to run the complete script with pgbench, use pgdyno bench --script FILE"
_WHY = {
    "sleep": "a workload has no think times: workload replay --rate sets the rate of transactions",
    "shell": "pgdyno does not run shell commands of scripts",
    "setshell": "pgdyno does not run shell commands of scripts",
    "gset": "a workload does not pass rows from one statement to the next",
    "aset": "a workload does not pass rows from one statement to the next",
}


@dataclass(frozen=True)
class ScriptStatement:
    """A statement with parameters ``$1`` and so on, their values, and its line number."""

    sql: str
    values: tuple[Value, ...]
    line: int


def read_script(file: str, text: str, variables: Mapping[str, Value]) -> list[ScriptStatement]:
    """Return a script's statements in order. ``variables`` are set before it begins.

    Raises: UsageError with file and line for a command that a workload does not support.
    """
    known = dict(variables)
    statements: list[ScriptStatement] = []
    for line, part in _parts(text):
        meta = _META.match(part)
        if meta is not None:
            _set_variable(file, line, meta, known)
            continue
        for begin, sql in divided(part):
            at = line + part.count("\n", 0, begin)
            bound, names = with_variables(sql, known)
            if bound is None:
                raise UsageError(
                    f'"{file}", line {at}: :{names[0]} is within quotation marks',
                    detail="a parameter cannot be a part of a string",
                )
            statements.append(ScriptStatement(bound, tuple(known[name] for name in names), at))
    return statements


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield pgbench's meta-commands and the SQL between them, each with the number of its first line."""
    lines = text.split("\n")
    sql: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].lstrip().startswith("\\"):
            sql.append(lines[at])
            at += 1
            continue
        if sql:
            yield at - len(sql) + 1, "\n".join(sql)
            sql = []
        begin, whole = at, lines[at]
        while _GOES_ON.search(whole) is not None and at + 1 < len(lines):
            at += 1
            whole = f"{_GOES_ON.sub(' ', whole)}{lines[at]}"
        yield begin + 1, whole
        at += 1
    if sql:
        yield at - len(sql) + 1, "\n".join(sql)


def _set_variable(file: str, line: int, meta: re.Match[str], known: dict[str, Value]) -> None:
    """Execute the command ``set``. Raises: UsageError for any other command."""
    name, rest = meta[1], meta[2].strip()
    if name != "set":
        raise UsageError(
            f'"{file}", line {line}: a workload does not support \\{name}', detail=_WHY.get(name), hint=_HINT
        )
    found = _SET.fullmatch(rest)
    if found is None:
        raise UsageError(f'"{file}", line {line}: \\set requires a variable and an expression')
    try:
        known[found[1]] = evaluate(found[2], known)
    except ExpressionError as error:
        raise UsageError(
            f'"{file}", line {line}: \\set {found[1]} has an unsupported expression',
            detail=str(error),
            hint="use numbers, random(…), :variables, or sums of one of these and a number",
        ) from error


_APPROXIMATE = {
    "gaussian": "random_gaussian is replayed with a parameter of 6",
    "pareto": "random_exponential is replayed with 80 % of the values in the lowest fifth of the range",
    "zipfian": "random_zipfian is replayed with an exponent of 0.8",
}


@dataclass(frozen=True)
class ReadScript:
    """A script's statements and its weight."""

    file: str
    weight: float
    statements: Sequence[ScriptStatement]


@dataclass
class ScriptedLoad:
    """Statements and transactions of scripts. ``is_read_only``: no statement can change rows."""

    statements: list[CapturedStatement] = field(default_factory=list)
    transactions: list[CapturedTransaction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_read_only: bool = True
    _names: dict[tuple[str, int], str] = field(default_factory=dict)
    _calls: Counter[str] = field(default_factory=Counter)

    def add(self, script: ReadScript) -> None:
        """Add a script. Raises: UsageError if it has no statements, or one that cannot be replayed."""
        times: Counter[str] = Counter()
        first: dict[Source, tuple[str, int, int]] = {}
        calls: list[CapturedCall] = []
        for one in script.statements:
            look = look_at(parameterised(one.sql).sql)
            if isinstance(look, str):
                raise UsageError(f'"{script.file}", line {one.line}: cannot be replayed', detail=look)
            self.is_read_only &= look.is_read_only
            times[one.sql] += 1  # a repeated statement gets a second name, to distinguish the parameters
            name = self._name(one.sql, times[one.sql], is_prepared=look.kind is TransactionPart.QUERY)
            self._calls[name] += round(script.weight)
            calls.append(CapturedCall(name, 1.0, tuple(self._parameters(name, one.values, first))))
        if not calls:
            raise UsageError(f'"{script.file}" has no statement')
        self.transactions.append(CapturedTransaction(script.weight, tuple(calls)))

    def counted(self) -> tuple[CapturedStatement, ...]:
        """Return the statements, each with its number of calls in one run of all scripts."""
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
        """Yield parameters: a variable is drawn at its first use, and keeps its value afterwards."""
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
