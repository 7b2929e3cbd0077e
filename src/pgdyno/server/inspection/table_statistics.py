"""Tables of a database with the planner's statistics of them: catalogues alone are read, no table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pgdyno.model.servers.answers import answers_of_postgresql
from pgdyno.model.servers.table_statistics import (
    ColumnStatistics,
    Dependency,
    ForeignKey,
    StoredTable,
    TableColumn,
)
from pgdyno.server.connection.connection import Connection
from pgdyno.server.connection.connection_errors import failures_in_words
from pgdyno.server.connection.control_connection import READING, Settings
from pgdyno.server.inspection.column_statistics import FROM_PG_STATS, MOST_ROWS, statistics_of, within

FORMS_OF_VALUES: Settings = {
    **READING,
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
}
"""Settings with which texts of values are those that pgdyno.synthesis reads."""
_TABLES = """
WITH RECURSIVE stored AS (
    -- Partitions by hash are taken together: their rows find them by their keys.
    SELECT c.oid, c.oid AS root, false AS is_within, p.partstrat = 'h' AS is_by_hash
    FROM pg_class c LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
    UNION ALL
    SELECT i.inhrelid, s.root, s.is_within OR s.is_by_hash, p.partstrat = 'h'
    FROM stored s JOIN pg_inherits i ON i.inhparent = s.oid
    JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition AND c.relkind IN ('r', 'p')
    LEFT JOIN pg_partitioned_table p ON p.partrelid = i.inhrelid
)
SELECT c.oid, s.root, n.nspname, c.relname, c.reltuples::float8, pg_relation_size(c.oid),
       pg_total_relation_size(c.oid), c.relkind = 'p', pg_get_partition_constraintdef(c.oid)
FROM stored s JOIN pg_class c ON c.oid = s.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT coalesce(s.is_within, false) AND (c.relkind = 'r' OR s.is_by_hash) AND c.relpersistence <> 't'
  AND n.nspname !~ '^(pg_|information_schema$)'
  AND NOT EXISTS (SELECT 1 FROM pg_depend d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = s.root AND d.deptype = 'e')
ORDER BY n.nspname, c.relname
"""
_LEAVES = """
SELECT c.oid, c.reltuples::float8, pg_relation_size(c.oid), pg_total_relation_size(c.oid)
FROM pg_partition_tree(%s) t JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf ORDER BY c.reltuples DESC
"""
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier, a.attnotnull AS is_not_null
    FROM pg_attribute a WHERE a.attrelid = %(table)s AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated = ''
    UNION ALL
    SELECT b.attnum, t.typbasetype, CASE WHEN b.modifier < 0 THEN t.typtypmod ELSE b.modifier END,
           b.is_not_null OR t.typnotnull
    FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT a.attname, t.typname, b.modifier, b.is_not_null,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT') AND NOT row_security_active(a.attrelid),
       e.typname,
       ARRAY(SELECT l.enumlabel::text FROM pg_enum l WHERE l.enumtypid = coalesce(e.oid, t.oid)
             ORDER BY l.enumsortorder)
FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
JOIN pg_attribute a ON a.attrelid = %(table)s AND a.attnum = b.attnum
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
ORDER BY a.attnum
"""
_STATISTICS = f"""
SELECT a.attname, {FROM_PG_STATS}
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
WHERE c.oid = %s AND NOT s.inherited
"""  # noqa: S608 — constants
_KEYS = """
SELECT ARRAY(SELECT a.attname::text
             FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(number, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place)
FROM pg_index i
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND NOT 0 = ANY (i.indkey)
ORDER BY NOT i.indisprimary, i.indnkeyatts, i.indexrelid
"""
_FOREIGN_KEYS = """
SELECT f.conname,
       ARRAY(SELECT a.attname::text FROM unnest(f.conkey) WITH ORDINALITY AS k(number, place)
             JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number ORDER BY k.place),
       f.confrelid,
       ARRAY(SELECT a.attname::text FROM unnest(f.confkey) WITH ORDINALITY AS k(number, place)
             JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number ORDER BY k.place)
FROM pg_constraint f LEFT JOIN pg_constraint p ON p.oid = f.conparentid
WHERE f.conrelid = %s AND f.contype = 'f' AND p.conrelid IS DISTINCT FROM f.conrelid ORDER BY f.conname
"""
_EXPRESSIONS = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %(table)s AND contype = 'c'
UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = %(table)s
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %(table)s
UNION ALL SELECT pg_get_constraintdef(d.oid)
          FROM pg_constraint d JOIN pg_attribute a ON a.atttypid = d.contypid
          WHERE a.attrelid = %(table)s AND d.contypid <> 0
"""
_DEPENDENCIES = """
SELECT (SELECT json_object_agg(a.attnum, a.attname) FROM pg_attribute a
        WHERE a.attrelid = x.stxrelid AND a.attnum = ANY (x.stxkeys)),
       s.dependencies::text
FROM pg_statistic_ext x JOIN pg_namespace n ON n.oid = x.stxnamespace
JOIN pg_stats_ext s ON s.statistics_schemaname = n.nspname AND s.statistics_name = x.stxname
WHERE x.stxrelid = %s AND s.dependencies IS NOT NULL
"""
_VIEWS = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'm' AND c.relispopulated AND n.nspname !~ '^(pg_|information_schema$)'
  AND NOT EXISTS (SELECT 1 FROM pg_depend d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.oid
"""
_HIDDEN = """
SELECT x.stxname FROM pg_statistic_ext x JOIN pg_namespace n ON n.oid = x.stxnamespace
WHERE x.stxrelid = %s AND 'f' = ANY (x.stxkind)
  AND NOT EXISTS (SELECT 1 FROM pg_stats_ext s
                  WHERE s.statistics_schemaname = n.nspname AND s.statistics_name = x.stxname)
ORDER BY x.stxname
"""
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_DEPENDENCY = re.compile(r'"(\d+(?:, \d+)*) => (\d+)": ([0-9.]+)')


@answers_of_postgresql()
def read_table_statistics(connection: Connection) -> tuple[StoredTable, ...]:
    """Return the tables of a database, as a connection with ``FORMS_OF_VALUES`` sees them.

    Raises: ServerError, ConnectionFailedError.
    """
    with failures_in_words():
        rows = connection.execute(_TABLES).fetchall()
        return tuple(_table(connection, row) for row in rows)


def _table(connection: Connection, row: Sequence[Any]) -> StoredTable:
    oid, root, schema, name, tuples, heap_bytes, size_bytes, is_partitioned, bound = row
    sampled = oid
    if is_partitioned:  # by hash: the partitions are alike, and the largest tells of all
        leaves = connection.execute(_LEAVES, (oid,)).fetchall()
        sampled = leaves[0][0] if leaves else oid
        known = [max(0.0, one[1]) for one in leaves]
        tuples, heap_bytes, size_bytes = sum(known), *(sum(one[place] for one in leaves) for place in (2, 3))
    statistics = _statistics(connection, sampled)
    columns = _columns(connection, oid, statistics)
    names = {one.name for one in columns}  # without generated ones
    return StoredTable(
        oid=int(oid),
        schema=str(schema),
        name=str(name),
        rows=_rows(float(tuples), int(heap_bytes), is_analysed=bool(statistics)),
        size_bytes=int(size_bytes),
        columns=columns,
        keys=tuple(tuple(map(str, one)) for (one,) in connection.execute(_KEYS, (oid,)).fetchall()),
        foreign_keys=tuple(
            ForeignKey(str(key), tuple(own), int(table), tuple(referenced))
            for key, own, table, referenced in connection.execute(_FOREIGN_KEYS, (oid,)).fetchall()
            if names.issuperset(own)
        ),
        dependencies=tuple(
            one
            for one in _dependencies(connection, sampled)
            if names.issuperset((*one.columns, one.determined))
        ),
        literals=_literals([(bound,), *connection.execute(_EXPRESSIONS, {"table": oid}).fetchall()]),
        parent=int(root),
        hidden=tuple(str(one) for (one,) in connection.execute(_HIDDEN, (sampled,)).fetchall()),
    )


def _rows(tuples: float, heap_bytes: int, *, is_analysed: bool) -> float | None:
    """Return the server's estimate; None if there are some, and it has none."""
    if tuples > 0:
        return within(tuples, 0, MOST_ROWS)
    return 0.0 if heap_bytes == 0 or (tuples == 0 and is_analysed) else None


def _statistics(connection: Connection, table: int) -> Mapping[str, ColumnStatistics]:
    rows = connection.execute(_STATISTICS, (table,)).fetchall()
    return {str(name): statistics_of(its) for name, *its in rows}


def _columns(
    connection: Connection, table: int, statistics: Mapping[str, ColumnStatistics]
) -> tuple[TableColumn, ...]:
    rows = connection.execute(_COLUMNS, {"table": table}).fetchall()
    return tuple(
        TableColumn(
            name=str(name),
            type=str(type_),
            modifier=int(modifier),
            is_not_null=bool(is_not_null),
            is_readable=bool(is_readable),
            labels=tuple(map(str, labels)),
            element=None if element is None else str(element),
            statistics=statistics.get(str(name)),
        )
        for name, type_, modifier, is_not_null, is_readable, element, labels in rows
    )


def _dependencies(connection: Connection, table: int) -> tuple[Dependency, ...]:
    found: dict[tuple[tuple[str, ...], str], float] = {}
    for names, text in connection.execute(_DEPENDENCIES, (table,)).fetchall():
        for numbers, determined, degree in _DEPENDENCY.findall(text):
            columns = tuple(str(names[one]) for one in numbers.split(", "))
            found[columns, str(names[determined])] = float(degree)
    return tuple(Dependency(columns, determined, degree) for (columns, determined), degree in found.items())


def _literals(expressions: Sequence[Sequence[Any]]) -> frozenset[str]:
    """Return the texts between quotation marks in expressions of a table's schema."""
    texts = (str(text) for (text,) in expressions if text is not None)
    return frozenset(one.replace("''", "'") for text in texts for one in _LITERAL.findall(text))


@answers_of_postgresql()
def filled_views(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return schemas and names of materialized views that have been filled. Raises: ServerError."""
    with failures_in_words():
        rows = connection.execute(_VIEWS).fetchall()
    return tuple((str(schema), str(name)) for schema, name in rows)
