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

_META = re.compile(r"\\(?P<name>(?:(?!\\\r?\n)[^ \t\r\f\v\n])*)(?P<rest>(?:\\\r?\n|[^\n])*)")
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
    at, parts, begin, depth = 0, list[str](), -1, 0
    while at < len(script):
        found = TOKEN.match(script, at)
        if found is None:  # unreachable: TOKEN takes any character
            break
        part = found[0]
        if part == "\\" and script[at + 1 : at + 2] not in {";", ":"}:
            yield from _statement(script, parts, begin)
            meta = _META.match(script, at)
            whole = part if meta is None else meta[0]
            if meta is not None and meta["name"]:
                yield _meta(meta, _line(script, at))
            at, parts, begin, depth = at + len(whole), [], -1, 0
            continue
        is_operator = found.lastgroup == "other"
        if is_operator and part == ";" and depth == 0:
            yield from _statement(script, parts, begin)
            at, parts, begin = found.end(), [], -1
            continue
        if part == "\\":
            part = script[at : at + 2]
        if is_operator:
            depth = max(0, depth + (part == "(") - (part == ")"))
        if begin < 0 and found.lastgroup != "space":
            begin = at
        if begin >= 0:
            parts.append(part)
        at += len(part)
    yield from _statement(script, parts, begin)


def _statement(script: str, parts: list[str], begin: int) -> Iterator[Sql]:
    if begin < 0:
        return
    text = "".join(part[1:] if part[0] == "\\" else part for part in parts).strip()
    yield Sql(text, _line(script, begin), is_combined=_COMBINED in parts)


def _meta(found: re.Match[str], line: int) -> Meta:
    return Meta(found["name"].lower(), _CONTINUATION.sub(" ", found["rest"]).strip(), line)


def _line(script: str, at: int) -> int:
    return script.count("\n", 0, at) + 1
