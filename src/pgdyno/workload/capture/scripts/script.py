"""A script of pgbench: its statements, each with the values of its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgdyno.base.errors import UsageError
from pgdyno.workload.capture.literals import divided, with_variables
from pgdyno.workload.capture.scripts.expression import ExpressionError, Value, evaluate

_META = re.compile(r"\s*\\(\w+|\S)\s*(.*)", re.DOTALL)
_SET = re.compile(r"(\w+)\s+(.+)", re.DOTALL)
_GOES_ON = re.compile(r"\\[ \t]*$")
_HINT = "pgbench itself runs all of a script: pgdyno bench --script FILE"
_WHY = {
    "sleep": "a workload has no think times: workload replay --rate says how many transactions arrive",
    "shell": "pgdyno runs no commands of scripts",
    "setshell": "pgdyno runs no commands of scripts",
    "gset": "a workload does not take rows of one statement to the next",
    "aset": "a workload does not take rows of one statement to the next",
}


@dataclass(frozen=True)
class ScriptStatement:
    """A statement with ``$1`` and so on, the values of these, and its line."""

    sql: str
    values: tuple[Value, ...]
    line: int


def read_script(file: str, text: str, variables: Mapping[str, Value]) -> list[ScriptStatement]:
    """Return a script's statements in order. ``variables`` are set before it begins.

    Raises: UsageError with file and line for what no workload can have.
    """
    known = dict(variables)
    statements: list[ScriptStatement] = []
    for line, part in _parts(text):
        meta = _META.match(part)
        if meta is not None:
            _obey(file, line, meta, known)
            continue
        for begin, sql in divided(part):
            at = line + part.count("\n", 0, begin)
            bound, names = with_variables(sql, known)
            if bound is None:
                raise UsageError(
                    f'"{file}", line {at}: :{names[0]} stands within quotation marks',
                    detail="a parameter cannot be a part of a text",
                )
            statements.append(ScriptStatement(bound, tuple(known[name] for name in names), at))
    return statements


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield commands of pgbench and the SQL between them, each with the number of its first line."""
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


def _obey(file: str, line: int, meta: re.Match[str], known: dict[str, Value]) -> None:
    """Set a variable. Raises: UsageError for another command."""
    name, rest = meta[1], meta[2].strip()
    if name != "set":
        raise UsageError(
            f'"{file}", line {line}: a workload cannot have \\{name}', detail=_WHY.get(name), hint=_HINT
        )
    found = _SET.fullmatch(rest)
    if found is None:
        raise UsageError(f'"{file}", line {line}: \\set takes a variable and an expression')
    try:
        known[found[1]] = evaluate(found[2], known)
    except ExpressionError as error:
        raise UsageError(
            f'"{file}", line {line}: \\set {found[1]} has an expression that cannot be drawn',
            detail=str(error),
            hint="numbers, random(…), :variables and sums of them with a number can be",
        ) from error
