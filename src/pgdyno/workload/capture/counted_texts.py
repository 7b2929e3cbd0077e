"""Texts of statistics and of SQL's PREPARE and EXECUTE, as statements that a server can prepare.

PostgreSQL 18 shows only the first constant of a list, and counts lists of all lengths together. A list of
keys finds one row per value, so its length is the number of rows per call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.literals import (
    TOKEN,
    in_place_of_parameters,
    parameterised,
    statements_of,
)
from pgdyno.workload.capture.name_resolution import column_of
from pgdyno.workload.capture.syntax import number_of, parameter_count, shared, tree, within_wrapping

_NAME = r'(?:"(?:[^"]|"")*+"|[^\W\d][\w$]*+)'
_BLANK = r"(?:\s|--[^\n]*+|/\*.*?\*/)*+"
_PREPARE = re.compile(
    rf"{_BLANK}PREPARE\s+{_NAME}\s*(?:\((?P<types>(?:[^()]|\([^()]*+\))*+)\)\s*)?AS\b(?P<sql>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EXECUTE = re.compile(
    rf"{_BLANK}EXECUTE\s+{_NAME}\s*(?:\((?P<arguments>.*)\)\s*)?;?\s*", re.IGNORECASE | re.DOTALL
)
# A constant with casts. Words after a cast may be operators.
_VALUE = re.compile(
    r'SELECT \$1(?:::(?:(?! (?:at|is|isnull|notnull)\b)[\w. "\[\]])+(?:\([\d, ]*\))?)*', re.IGNORECASE
)
_OPENING, _CLOSING = "([", ")]"
_SQUASHED = re.compile(r"\$(\d+)\s*/\*, \.\.\. \*/")
_LONGEST = 1000  # arbitrary maximum length of a list
_FEWER_ROWS = (exp.Limit, exp.Fetch, exp.Offset, exp.Group, exp.AggFunc, exp.Distinct)
_COUNTED_FIELD = re.compile(r"\bextract\s*\(\s*\$\d", re.IGNORECASE)


def as_sql(text: str) -> str:
    """Return a text of pg_stat_statements as a statement that the server can prepare.

    EXECUTE is counted under the text of PREPARE. Constants that are left become parameters. Comments stay:
    one of them marks a list of which the server shows only the first constant.
    """
    sql = prepared_by(text) or text
    keeps_names = _COUNTED_FIELD.search(sql) is None
    return shared(parameterised(sql, keeps_names=keeps_names, keeps_comments=True), is_counted=True).sql


def prepared_by(text: str) -> str | None:
    """Return the statement of PREPARE, with casts of its parameters; None for other statements."""
    found = _PREPARE.fullmatch(text)
    if found is None or len(statements_of(text)) > 1:
        return None
    types = enumerate(_parts(found["types"] or ""), 1)
    casts = {number: f"${number}::{one}" for number, one in types if one.lower() != "unknown"}
    return in_place_of_parameters(found["sql"].strip(), casts)


def arguments_of(text: str) -> dict[int, str | None] | None:
    """Return the constants among the arguments of EXECUTE, by number; None for other statements."""
    found = _EXECUTE.fullmatch(text)
    if found is None or len(statements_of(text)) > 1:
        return None
    values: dict[int, str | None] = {}
    for number, argument in enumerate(_parts(found["arguments"] or ""), 1):
        one = parameterised(f"SELECT {argument}")
        if _VALUE.fullmatch(one.sql) is not None and 1 in one.values:
            values[number] = one.values[1]
    return values


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


@dataclass(frozen=True)
class Lengthened:
    """A statement with the complete list, the types of its parameters, and the length of the list."""

    sql: str
    types: tuple[str, ...]
    length: int


def lengthened(sql: str, types: Sequence[str], seen: Seen, columns: Sequence[Column]) -> Lengthened | None:
    """Return a statement with its list as long as the rows found per call; None if the length is unknown."""
    found = _SQUASHED.findall(sql)
    if len(found) != 1 or not seen.calls:
        return None
    number, length = int(found[0]), math.ceil(seen.rows / seen.calls - 0.01)
    if not 1 < length <= _LONGEST or number > len(types) or not _is_of_keys(sql, number, columns):
        return None
    first = parameter_count(sql) + 1
    more = ", ".join(f"${one}" for one in range(first, first + length - 1))
    whole = _SQUASHED.sub(f"${number}, {more}", sql)
    return Lengthened(whole, (*types, *[types[number - 1]] * (length - 1)), length)


def _is_of_keys(sql: str, number: int, columns: Sequence[Column]) -> bool:
    """Whether each value of the list finds one row, and nothing else affects the number of rows."""
    parsed = tree(sql)
    if parsed is None or parsed.find(*_FEWER_ROWS) or len(list(parsed.find_all(exp.Table))) != 1:
        return False
    for one in parsed.find_all(exp.In):
        if [number_of(within_wrapping(value)) for value in one.expressions] == [number]:
            column = column_of(within_wrapping(one.this), columns)
            return column is not None and column.is_key and one.find_ancestor(exp.Or, exp.Not) is None
    return False
