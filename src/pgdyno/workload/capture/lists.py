"""Lists of constants, of which PostgreSQL 18 shows only the first one.

It counts lists of all lengths together. A list of keys finds one row per value, so its length is the number
of rows per call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.name_resolution import column_of
from pgdyno.workload.capture.syntax import number_of, parameter_count, tree, within_wrapping

_SQUASHED = re.compile(r"\$(\d+)\s*/\*, \.\.\. \*/")
_LONGEST = 1000  # arbitrary maximum length of a list
_FEWER_ROWS = (exp.Limit, exp.Fetch, exp.Offset, exp.Group, exp.AggFunc, exp.Distinct)


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
