"""A workload made of pgbench scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from pgdyno.workload.capture.literals import parameterised, with_variables
from pgdyno.workload.capture.scripts.arithmetic import Drawn, ExpressionError, Source, Value, text_of
from pgdyno.workload.capture.scripts.commands import Meta, Sql, commands_of
from pgdyno.workload.capture.scripts.expression import evaluate
from pgdyno.workload.capture.statements import ENDS, TransactionPart, base_name, look_at

_SET = re.compile(r"([A-Za-z0-9_\x80-\U0010ffff]+)\s+(.+)", re.DOTALL)
_HINT = "to run the complete script with pgbench, use pgdyno bench --script FILE"
_ROWS = "a workload does not pass rows from one statement to the next"
_COMMANDS = "pgdyno does not run shell commands of scripts"
_BRANCH = "a workload has the same statements in each transaction; write a script for each branch"
_PIPELINE = "a workload sends each statement after the result of the previous one"
_WHY = {
    "sleep": "a workload has no think times: workload replay --rate sets the rate of transactions",
    "shell": _COMMANDS,
    "setshell": _COMMANDS,
    "gset": _ROWS,
    "aset": _ROWS,
    "if": _BRANCH,
    "elif": _BRANCH,
    "else": _BRANCH,
    "endif": _BRANCH,
    "startpipeline": _PIPELINE,
    "syncpipeline": _PIPELINE,
    "endpipeline": _PIPELINE,
}
"""Commands of pgbench that a workload does not support, with the reason."""
_OF_PGBENCH = re.compile(r":(client_id|random_seed|default_seed)\b")


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
    for command in commands_of(text):
        place = f'"{file}", line {command.line}'
        if isinstance(command, Meta):
            _set_variable(place, command, known)
        else:
            statements.append(_bound(place, command, known))
    return statements


def _bound(place: str, command: Sql, known: Mapping[str, Value]) -> ScriptStatement:
    """Return a statement with parameters in place of variables."""
    if command.is_combined:
        raise UsageError(
            f"{place}: a workload does not support \\;",
            detail="it sends several statements in one message; a workload sends each separately",
            hint=f"{_HINT} --protocol simple",
        )
    bound, names = with_variables(command.text, known)
    if bound is None:
        raise UsageError(
            f"{place}: :{names[0]} is within quotation marks",
            detail="a parameter cannot be a part of a string",
            hint=_HINT,
        )
    if (own := _OF_PGBENCH.search(bound)) is not None and own[1] not in known:
        raise UsageError(
            f"{place}: a workload does not support {own[0]}",
            detail="its value differs between clients or runs",
            hint=_HINT,
        )
    return ScriptStatement(bound, tuple(known[name] for name in names), command.line)


def _set_variable(place: str, command: Meta, known: dict[str, Value]) -> None:
    """Execute the command ``set``. Raises: UsageError for any other command."""
    if command.name in _WHY:
        raise UsageError(
            f"{place}: a workload does not support \\{command.name}", detail=_WHY[command.name], hint=_HINT
        )
    if command.name != "set":
        raise UsageError(f"{place}: pgbench has no command \\{command.name}")
    found = _SET.fullmatch(command.rest)
    if found is None:
        raise UsageError(f"{place}: \\set requires a variable and an expression")
    try:
        known[found[1]] = evaluate(found[2], known)
    except ExpressionError as error:
        raise UsageError(
            f"{place}: \\set {found[1]} has an unsupported expression",
            detail=str(error),
            hint=f"use numbers, random(…), :variables, or sums of one of these and an integer; {_HINT}",
        ) from error


@dataclass(frozen=True)
class ReadScript:
    """A script's statements and its weight."""

    file: str
    weight: float
    statements: Sequence[ScriptStatement]


@dataclass
class ScriptedLoad:
    """Statements and transactions of scripts. ``is_read_only``: no statement can change rows.

    ``writing`` are the names of functions that may write.
    """

    writing: Collection[str] = ()
    statements: list[CapturedStatement] = field(default_factory=list)
    transactions: list[CapturedTransaction] = field(default_factory=list)
    is_read_only: bool = True
    _names: dict[tuple[str, int], str] = field(default_factory=dict)
    _calls: Counter[str] = field(default_factory=Counter)

    def add(self, script: ReadScript) -> None:
        """Add a script. Raises: UsageError if it has no statements, or one that cannot be replayed."""
        times: Counter[str] = Counter()
        first: dict[Source, tuple[str, int, int]] = {}
        calls: list[CapturedCall] = []
        for one in script.statements:
            look = look_at(parameterised(one.sql).sql, self.writing)
            if isinstance(look, str):
                raise UsageError(f'"{script.file}", line {one.line}: cannot be replayed', detail=look)
            self.is_read_only &= look.is_read_only
            times[one.sql] += 1  # a repeated statement gets a second name, to distinguish the parameters
            name = self._name(one.sql, times[one.sql], is_prepared=look.kind is TransactionPart.QUERY)
            self._calls[name] += round(script.weight)
            calls.append(CapturedCall(name, 1.0, tuple(self._parameters(name, one.values, first))))
        if not calls:
            raise UsageError(f'"{script.file}" has no statement')
        _require_end(script)
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
                yield Constant(text_of(value))
            elif value.source in first:
                other, parameter, plus = first[value.source]
                yield SameValue(parameter, None if other == name else other, value.plus - plus)
            else:
                first[value.source] = name, number, value.plus
                between = value.source.between
                yield replace(between, low=between.low + value.plus, high=between.high + value.plus)


_CHAIN = re.compile(r"\bAND\s+CHAIN\s*;?\s*$", re.IGNORECASE)


def _require_end(script: ReadScript) -> None:
    """Raise UsageError for a transaction that the script does not end, as pgbench does."""
    begun: int | None = None
    for one in script.statements:
        look = look_at(parameterised(one.sql).sql)
        kind = None if isinstance(look, str) else look.kind
        if kind is TransactionPart.BEGIN:
            begun = one.line if begun is None else begun
        elif kind in ENDS and _CHAIN.search(one.sql) is None:
            begun = None
    if begun is not None:
        raise UsageError(
            f'"{script.file}", line {begun}: the transaction that begins here is not ended in the script',
            detail="nothing in it would ever be committed",
            hint="end it with COMMIT or ROLLBACK",
        )
