"""Texts of statistics and of SQL's PREPARE and EXECUTE, as statements that a server can prepare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pgdyno.workload.capture.literals import TOKEN, in_place_of_parameters, parameterised

_NAME = r'(?:"(?:[^"]|"")*+"|[^\W\d][\w$]*+)'
_BLANK = r"(?:\s|--[^\n]*+|/\*.*?\*/)*+"
_PREPARE = re.compile(
    rf"{_BLANK}PREPARE\s+{_NAME}\s*(?:\((?P<types>(?:[^()]|\([^()]*+\))*+)\)\s*)?AS\b(?P<sql>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EXECUTE = re.compile(
    rf"{_BLANK}EXECUTE\s+{_NAME}\s*(?:\((?P<arguments>.*)\)\s*)?;?\s*", re.IGNORECASE | re.DOTALL
)
_VALUE = re.compile(r"SELECT \$1(?:::.*)?", re.DOTALL)
_OPENING, _CLOSING = "([", ")];"
_AFTER_LISTS = frozenset({
    "from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union",
    "except", "intersect",
})  # fmt: skip
"""Words that end the list of returned columns, and lists of columns that order or group rows."""
_WITHIN_LISTS = {("distinct", "from"), ("within", "group")}
_ORDER = re.compile(r"(?<!\s)(?:\s++(?:asc|desc)\b)?(?:\s++nulls\s++(?:first|last))?\s*+$", re.IGNORECASE)
_ALIAS = re.compile(rf"(?<!\s)(?:\s++as)?\s++{_NAME}\s*+$", re.IGNORECASE)
_DISTINCT = re.compile(r"^\s*(?:all|distinct)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\$\d+")
_LISTS = re.compile(r"\b(?:group|order)\s+by\b", re.IGNORECASE)
_Form: TypeAlias = Callable[[str], str]


def as_sql(text: str) -> str:
    """Return a text of pg_stat_statements as a statement that the server can prepare.

    EXECUTE is counted under the text of PREPARE. Constants that are left become parameters. Comments stay:
    one of them marks a list of which the server shows only the first constant.
    """
    sql = with_places(prepared_by(text) or text, _bare)
    return parameterised(sql, keeps_comments=True).sql


def prepared_by(text: str) -> str | None:
    """Return the statement of PREPARE, with casts of its parameters; None for other statements."""
    found = _PREPARE.fullmatch(text)
    if found is None:
        return None
    types = enumerate(_parts(found["types"] or ""), 1)
    casts = {number: f"${number}::{one}" for number, one in types if one.lower() != "unknown"}
    return in_place_of_parameters(found["sql"].strip(), casts)


def arguments_of(text: str) -> dict[int, str | None] | None:
    """Return the constants among the arguments of EXECUTE, by number; None for other statements."""
    found = _EXECUTE.fullmatch(text)
    if found is None:
        return None
    values: dict[int, str | None] = {}
    for number, argument in enumerate(_parts(found["arguments"] or ""), 1):
        one = parameterised(f"SELECT {argument}")
        if _VALUE.fullmatch(one.sql) is not None and 1 in one.values:
            values[number] = one.values[1]
    return values


def _exact(expression: str) -> str:
    """Return an expression with single spaces."""
    return " ".join(_DISTINCT.sub("", expression).split())


def _bare(expression: str) -> str:
    """Return an expression without space and constants."""
    without = parameterised(expression, keeps_names=False).sql
    return _NUMBERED.sub("$", "".join(_exact(without).split())).lower()


@dataclass
class _Query:
    """A query: its returned columns in order, and the list that is being read, with the offset of its part.

    ``columns`` has each with and without an alias, up to a star. ``repeated`` are those in the list so far.
    """

    columns: list[tuple[str, str]] = field(default_factory=list)
    list_: str = ""  # "select", "by" or ""
    begin: int = 0
    has_star: bool = False
    repeated: list[int] = field(default_factory=list)

    def replaced(self, sql: str, end: int, form: _Form) -> tuple[int, int, int] | None:
        """End a part of the list, and return the offsets of an expression that repeats a returned column.

        With them comes the column's number. None: the part is a column itself, or has no constants.
        """
        part = sql[self.begin : end]
        if self.list_ == "select":
            self.has_star |= part.rstrip().endswith("*")
            if not self.has_star:
                self.columns.append((form(part), form(_ALIAS.sub("", part))))
            return None
        expression = _ORDER.sub("", part)
        begin = self.begin + len(expression) - len(expression.lstrip())
        if expression.strip().isdecimal() or not parameterised(expression, keeps_names=False).values:
            return None
        own = form(expression)
        numbers = [number for number, one in enumerate(self.columns, 1) if own in one]
        if not numbers:
            return None
        self.repeated.append(next((one for one in numbers if one not in self.repeated), numbers[0]))
        return begin, self.begin + len(expression.rstrip()), self.repeated[-1]


def with_places(sql: str, form: _Form = _exact) -> str:
    """Return a query that groups and orders rows by numbers of columns where it repeats their constants.

    The server counts equal expressions once: pg_stat_statements shows ``SELECT date_trunc($1, a) FROM t GROUP
    BY date_trunc('day', a)``, which is not valid. ``form`` returns the same text for equal expressions.
    """
    pieces, end = list[str](), 0
    for begin, its_end, column in _repeated(sql, form) if _LISTS.search(sql) else ():
        pieces += [sql[end:begin], str(column)]
        end = its_end
    return "".join([*pieces, sql[end:]])


def _repeated(sql: str, form: _Form) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets of expressions that repeat a returned column with constants, and its number."""
    queries, before = [_Query()], ""  # by depth of parentheses
    for found in TOKEN.finditer(f"{sql} ;"):
        if found.lastgroup == "space":
            continue
        text, word = found[0], found[0].lower() if found.lastgroup == "word" else ""
        query, is_comma = queries[-1], found[0] == ","
        is_end = word in _AFTER_LISTS and (before, word) not in _WITHIN_LISTS
        if query.list_ and (is_comma or is_end or text in _CLOSING):
            if (one := query.replaced(sql, found.start(), form)) is not None:
                yield one
            query.list_, query.begin = query.list_ if is_comma else "", found.end()
        if text in _OPENING:
            queries.append(_Query())
        elif text in _CLOSING and len(queries) > 1:
            queries.pop()
        elif word == "select":
            queries[-1] = _Query(list_="select", begin=found.end())
        elif word == "by" and before in {"group", "order"}:
            query.list_, query.begin, query.repeated = "by", found.end(), []
        before = word


def _parts(text: str) -> list[str]:
    """Return the parts of a list, which commas separate."""
    parts, depth = [""], 0
    for found in TOKEN.finditer(text):
        depth += (found[0] in _OPENING) - (found[0] in _CLOSING)
        if found[0] == "," and not depth:
            parts.append("")
        else:
            parts[-1] += found[0]
    return [part.strip() for part in parts] if text.strip() else []
