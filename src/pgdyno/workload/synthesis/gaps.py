"""Gaps in the statistics of a database's tables, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.postgres.catalogued_tables import StoredTable
from pgdyno.workload.synthesis.columns import has_order
from pgdyno.workload.synthesis.database import UNKNOWN_ROWS
from pgdyno.workload.synthesis.fillers import filler

_MOST_NAMED = 8


def gaps(tables: Sequence[StoredTable]) -> Iterator[str]:
    """Yield notes on tables and columns whose rows are made up by little more than types."""
    unanalysed = [one.path for one in tables if one.rows is None]
    if unanalysed:
        yield f"never analysed, so {UNKNOWN_ROWS} rows each: {_listed(unanalysed)}"
    each = [(table, column) for table in tables if table.rows for column in table.columns]
    hidden = [f"{table.path}.{one.name}" for table, one in each if not one.is_readable]
    if hidden:
        yield f"the role may not see statistics of {_listed(hidden)}: made up by type"
    extended = [f"{table.schema}.{one}" for table in tables for one in table.hidden]
    if extended:
        yield f"shown to tables' owners alone, or empty: the extended statistics {_listed(extended)}"
    silent = [f"{table.path}.{one.name}" for table, one in each if one.is_readable and one.statistics is None]
    if silent:
        yield f"no statistics of {_listed(silent)}: made up by type"
    other = [(table, one) for table, one in each if not has_order(one)]
    filled = [f"{table.path}.{one.name} ({one.type})" for table, one in other if filler(one, 0) is not None]
    if filled:
        yield f"filled up to their width, without the original's distribution: {_listed(filled)}"
    empty = [f"{table.path}.{one.name} ({one.type})" for table, one in other if filler(one, 0) is None]
    if empty:
        yield f"NULL, as no values of the type are made up: {_listed(empty)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
