"""Planner statistics of columns, as visible to the role in pg_stats."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pgdyno.postgres.catalogued_tables import Column, ColumnStatistics
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.query import AS_BYTES

_EACH = f"""
ARRAY(SELECT {AS_BYTES.format("v.value")}
      FROM pg_catalog.unnest({{}}::pg_catalog.text::pg_catalog.text[]) WITH ORDINALITY AS v(value, place)
      ORDER BY v.place)
"""  # noqa: S608 — constants
FROM_PG_STATS = f"""
s.null_frac::pg_catalog.float8, s.avg_width, s.n_distinct::pg_catalog.float8,
{_EACH.format("s.most_common_vals")}, s.most_common_freqs::pg_catalog.float8[],
{_EACH.format("s.histogram_bounds")}, s.correlation::pg_catalog.float8,
{_EACH.format("s.most_common_elems")}, s.most_common_elem_freqs::pg_catalog.float8[],
s.elem_count_histogram[pg_catalog.array_upper(s.elem_count_histogram, 1)]::pg_catalog.float8
"""
"""The columns of pg_stats (alias s) that ``statistics_of`` takes."""
# A partitioned table has statistics of its own only after an ANALYZE of the table itself, which autovacuum
# never runs. Without them, the partition with most rows represents all.
_OF_COLUMNS = f"""
SELECT DISTINCT ON (w.place) w.place, {FROM_PG_STATS}
FROM ROWS FROM (pg_catalog.unnest(%s::pg_catalog.text[]), pg_catalog.unnest(%s::pg_catalog.text[]),
                pg_catalog.unnest(%s::pg_catalog.text[]))
     WITH ORDINALITY AS w(schema, "table", "column", place)
JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) w.schema
JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
     AND c.relname OPERATOR(pg_catalog.=) w."table"
CROSS JOIN LATERAL (
    SELECT c.oid AS oid, true AS is_whole
    UNION ALL
    (SELECT l.oid, false FROM pg_catalog.pg_partition_tree(c.oid) t
     JOIN pg_catalog.pg_class l ON l.oid OPERATOR(pg_catalog.=) t.relid
     WHERE t.isleaf AND c.relkind OPERATOR(pg_catalog.=) 'p' ORDER BY l.reltuples DESC LIMIT 1)
) p
JOIN pg_catalog.pg_class pc ON pc.oid OPERATOR(pg_catalog.=) p.oid
JOIN pg_catalog.pg_namespace pn ON pn.oid OPERATOR(pg_catalog.=) pc.relnamespace
JOIN pg_catalog.pg_stats s ON s.schemaname OPERATOR(pg_catalog.=) pn.nspname
     AND s.tablename OPERATOR(pg_catalog.=) pc.relname AND s.attname OPERATOR(pg_catalog.=) w."column"
ORDER BY w.place, p.is_whole DESC, s.inherited DESC
"""  # noqa: S608 — constants
MOST_ROWS = 1 << 40
"""More rows than fit into a table."""
_WIDEST_BYTES = 1 << 30  # no value is wider
_ROUNDING = 1e-3  # of floats of 32 bits


@checked_results()
def read_column_statistics(
    connection: Connection, columns: Collection[Column]
) -> Mapping[str, ColumnStatistics]:
    """Return statistics by column path, for the columns with visible statistics.

    The connection's search path must be empty. Raises: ServerError, ConnectionFailedError.
    """
    wanted = list(columns)
    names = ([one.schema for one in wanted], [one.table for one in wanted], [one.name for one in wanted])
    with server_errors_converted():
        rows = connection.execute(_OF_COLUMNS, names).fetchall()
    return {wanted[int(place) - 1].path: statistics_of(its) for place, *its in rows}


def statistics_of(values: Sequence[Any]) -> ColumnStatistics:
    """Convert a row of ``FROM_PG_STATS``. Raises: ValueError, TypeError for an invalid row."""
    nulls, width, distinct, common, frequencies, bounds, correlation, *of_elements = values
    elements, element_frequencies, count = of_elements
    return ColumnStatistics(
        null_fraction=within(nulls, 0, 1),
        width_bytes=int(within(width, 0, _WIDEST_BYTES)),
        distinct=within(distinct, -1, MOST_ROWS),
        common=_texts(common),
        frequencies=tuple(within(one, 0, 1) for one in frequencies or ()),
        bounds=_texts(bounds),
        correlation=None if correlation is None else within(correlation, -1, 1),
        elements=_texts(elements),
        element_frequencies=tuple(within(one, 0, 1) for one in element_frequencies or ()),
        element_count=None if count is None else within(count, 0, _WIDEST_BYTES),
    )


def within(value: Any, low: float, high: float) -> float:
    """Return a number clamped to its valid range, after rounding errors. Raises: ValueError outside it."""
    if not low - _ROUNDING <= float(value) <= high + _ROUNDING:
        raise ValueError(f"{value} is not between {low} and {high}")
    return min(max(float(value), low), high)


def _texts(values: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(one.decode(errors="replace") for one in values)
