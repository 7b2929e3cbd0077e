"""The commands of a pgbench script, divided as pgbench divides them. Pure.

Source: psqlscan.l, exprscan.l and ParseScript() in pgbench.c: SQL ends with ``;`` outside of parentheses, or
where a backslash outside of quotation marks and comments begins a command, anywhere in a line. That command
goes on to the end of the line, and beyond it after a backslash. After a backslash, ``;`` and ``:`` stand for
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.workload.capture.literals import TOKEN

_PART = re.compile(
    r"(?P<meta>\\(?![;:])(?P<command>(?:(?!\\\r?\n)[^ \t\r\f\v\n])*)(?P<rest>(?:\\\r?\n|[^\n])*))"
    rf"|(?P<escaped>\\[;:])|{TOKEN.pattern}",
    TOKEN.flags,
)
_CONTINUATION = re.compile(r"\\\r?\n")
_COMBINED = "\\;"


@dataclass(frozen=True)
class Sql:
    """A statement and the number of its first line. ``is_combined``: several in one message."""

    text: str
    line: int
    is_combined: bool = False


@dataclass(frozen=True)
class Meta:
    """A backslash command in lower case, as pgbench takes any case, with the rest of its line."""

    name: str
    rest: str
    line: int


def commands_of(script: str) -> Iterator[Sql | Meta]:
    """Yield the commands of a script in their order."""
    parts, begin, depth = list[str](), -1, 0
    for found in _PART.finditer(script):
        part, kind = found[0], found.lastgroup
        is_end = kind == "other" and part == ";" and depth == 0
        if kind == "meta" or is_end:
            yield from _statement(script, parts, begin)
            parts, begin, depth = [], -1, 0
        if kind == "meta" and found["command"]:
            rest = _CONTINUATION.sub(" ", found["rest"]).strip()
            yield Meta(found["command"].lower(), rest, _line(script, found.start()))
        if kind == "meta" or is_end or (begin < 0 and kind == "space"):
            continue
        begin = found.start() if begin < 0 else begin
        parts.append(part)
        if kind == "other":
            depth = max(0, depth + (part == "(") - (part == ")"))
    yield from _statement(script, parts, begin)


def _statement(script: str, parts: list[str], begin: int) -> Iterator[Sql]:
    if begin >= 0:
        text = "".join(part[1:] if part[0] == "\\" else part for part in parts).strip()
        yield Sql(text, _line(script, begin), is_combined=_COMBINED in parts)


def _line(script: str, at: int) -> int:
    return script.count("\n", 0, at) + 1
