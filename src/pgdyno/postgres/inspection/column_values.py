"""The distribution of a column's values: a sample of rows, and the range of integer keys.

The values stay with the copy of the data; they are not part of a workload file.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import READING, look

_MOST_VALUES = 10_000  # arbitrary: a few hundred kB per column
_LONGEST = 200  # characters of a value
_DENSE = 1.1  # largest ratio of a key range to its rows for which the range replaces a sample
_SIZE = """
SELECT GREATEST(c.reltuples, 0)::pg_catalog.float8 FROM pg_catalog.pg_class c
WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(%s)
  AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m}'::pg_catalog."char"[])
"""
_SEED = "SELECT pg_catalog.setseed(0.5)"
_ENDS = sql.SQL("SELECT pg_catalog.min({column}), pg_catalog.max({column}) FROM {table}")
_VALUES = sql.SQL("""
SELECT {column}::pg_catalog.text FROM {table} {sample}
WHERE {column} IS NOT NULL AND pg_catalog.length({column}::pg_catalog.text) OPERATOR(pg_catalog.<=) %s
ORDER BY pg_catalog.random() LIMIT %s
""")


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column. ``dense``: the lowest and highest of integer keys with few gaps.

    ``sample``: values of random rows, as text. ``highest``: the highest value of an integer key.
    """

    sample: tuple[str, ...] = ()
    dense: tuple[int, int] | None = None
    highest: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether any values are known."""
        return bool(self.sample) or self.dense is not None


@checked_results()
def read_column_values(connection: Connection, column: Column) -> ColumnValues:
    """Return values of a table's column; empty for a view's. Raises: ServerError, e.g. without SELECT."""
    with server_errors_converted(), look(connection, READING):  # the seed is per session
        return _values_of(connection, column)


def _values_of(connection: Connection, column: Column) -> ColumnValues:
    names = {"column": sql.Identifier(column.name), "table": sql.Identifier(column.schema, column.table)}
    size = connection.execute(_SIZE, (names["table"].as_string(connection),)).fetchone()
    if size is None:
        return ColumnValues()
    rows, ends = max(1.0, size[0]), None
    if column.is_key and column.is_integer:
        [ends] = connection.execute(_ENDS.format(**names)).fetchall()
    if ends is not None and ends[0] is not None and ends[1] - ends[0] + 1 <= _DENSE * rows:
        return ColumnValues(dense=(int(ends[0]), int(ends[1])), highest=int(ends[1]))
    connection.execute(_SEED)  # equal rows give equal samples
    found = connection.execute(
        _VALUES.format(**names, sample=_sample(rows)), (_LONGEST, _MOST_VALUES)
    ).fetchall()
    highest = None if ends is None or ends[1] is None else int(ends[1])
    return ColumnValues(tuple(str(value) for (value,) in found), highest=highest)


def _sample(rows: float) -> sql.Composable:
    """Return a TABLESAMPLE clause for a large table, for about twice the rows that are kept."""
    share = 100 * 2 * _MOST_VALUES / rows
    if share >= 100:
        return sql.SQL("")
    return sql.SQL("TABLESAMPLE SYSTEM ({}) REPEATABLE (1)").format(sql.Literal(share))
