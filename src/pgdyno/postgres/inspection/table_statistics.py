"""Tables of a database with their planner statistics. Only catalogs are read, no table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pgdyno.postgres.catalogued_tables import (
    ColumnStatistics,
    Dependency,
    ForeignKey,
    StoredTable,
    TableColumn,
)
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import READING, Settings
from pgdyno.postgres.inspection.column_statistics import FROM_PG_STATS, MOST_ROWS, statistics_of, within

FORMS_OF_VALUES: Settings = {
    **READING,
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
}
"""Settings that produce value texts in the form that pgdyno.workload.synthesis reads."""
_TABLES = """
WITH RECURSIVE stored AS (
    -- Partitions by hash are taken together: their rows find them by their keys.
    SELECT c.oid, c.oid AS root, false AS is_within, p.partstrat OPERATOR(pg_catalog.=) 'h' AS is_by_hash
    FROM pg_catalog.pg_class c
    LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid OPERATOR(pg_catalog.=) c.oid
    WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[]) AND NOT c.relispartition
    UNION ALL
    SELECT i.inhrelid, s.root, s.is_within OR s.is_by_hash, p.partstrat OPERATOR(pg_catalog.=) 'h'
    FROM stored s
    JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) s.oid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid AND c.relispartition
         AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog."char"[])
    LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid OPERATOR(pg_catalog.=) i.inhrelid
)
SELECT c.oid, s.root, n.nspname, c.relname, c.reltuples::pg_catalog.float8,
       pg_catalog.pg_relation_size(c.oid), pg_catalog.pg_total_relation_size(c.oid),
       c.relkind OPERATOR(pg_catalog.=) 'p', pg_catalog.pg_get_partition_constraintdef(c.oid)
FROM stored s
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) s.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE NOT COALESCE(s.is_within, false) AND (c.relkind OPERATOR(pg_catalog.=) 'r' OR s.is_by_hash)
  AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND d.objid OPERATOR(pg_catalog.=) s.root AND d.deptype OPERATOR(pg_catalog.=) 'e')
ORDER BY n.nspname, c.relname
"""
_LEAVES = """
SELECT c.oid, c.reltuples::pg_catalog.float8, pg_catalog.pg_relation_size(c.oid),
       pg_catalog.pg_total_relation_size(c.oid)
FROM pg_catalog.pg_partition_tree(%s) t
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.relid
WHERE t.isleaf ORDER BY c.reltuples DESC
"""
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier, a.attnotnull AS is_not_null
    FROM pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) %(table)s AND a.attnum OPERATOR(pg_catalog.>) 0
      AND NOT a.attisdropped AND a.attgenerated OPERATOR(pg_catalog.=) ''
    UNION ALL
    SELECT b.attnum, t.typbasetype,
           CASE WHEN b.modifier OPERATOR(pg_catalog.<) 0 THEN t.typtypmod ELSE b.modifier END,
           b.is_not_null OR t.typnotnull
    FROM base b JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) b.type
    WHERE t.typtype OPERATOR(pg_catalog.=) 'd'
)
SELECT a.attname, t.typname, b.modifier, b.is_not_null,
       pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
       AND NOT pg_catalog.row_security_active(a.attrelid),
       e.typname,
       ARRAY(SELECT l.enumlabel::pg_catalog.text FROM pg_catalog.pg_enum l
             WHERE l.enumtypid OPERATOR(pg_catalog.=) COALESCE(e.oid, t.oid)
             ORDER BY l.enumsortorder)
FROM base b
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) b.type AND t.typtype OPERATOR(pg_catalog.<>) 'd'
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) %(table)s
     AND a.attnum OPERATOR(pg_catalog.=) b.attnum
LEFT JOIN pg_catalog.pg_type e ON e.oid OPERATOR(pg_catalog.=) t.typelem
     AND t.typcategory OPERATOR(pg_catalog.=) 'A'
ORDER BY a.attnum
"""
_STATISTICS = f"""
SELECT a.attname, {FROM_PG_STATS}
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_stats s ON s.schemaname OPERATOR(pg_catalog.=) n.nspname
     AND s.tablename OPERATOR(pg_catalog.=) c.relname AND s.attname OPERATOR(pg_catalog.=) a.attname
WHERE c.oid OPERATOR(pg_catalog.=) %s AND NOT s.inherited
"""  # noqa: S608 — constants
_KEYS = """
SELECT ARRAY(SELECT a.attname::pg_catalog.text
             FROM pg_catalog.unnest(i.indkey[0:i.indnkeyatts OPERATOR(pg_catalog.-) 1])
                  WITH ORDINALITY AS k(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid
                  AND a.attnum OPERATOR(pg_catalog.=) k.number
             ORDER BY k.place)
FROM pg_catalog.pg_index i
WHERE i.indrelid OPERATOR(pg_catalog.=) %s AND i.indpred IS NULL
  AND NOT 0 OPERATOR(pg_catalog.=) ANY (i.indkey)
  AND (i.indisunique OR EXISTS (
      -- Generated ranges overlap only if they are equal.
      SELECT 1 FROM pg_catalog.pg_constraint x
      WHERE x.conindid OPERATOR(pg_catalog.=) i.indexrelid AND x.contype OPERATOR(pg_catalog.=) 'x'
        AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_operator o
                        WHERE o.oid OPERATOR(pg_catalog.=) ANY (x.conexclop)
                          AND o.oprname OPERATOR(pg_catalog.<>) ALL ('{=,&&}'::pg_catalog.name[]))))
ORDER BY NOT i.indisprimary, i.indnkeyatts, i.indexrelid
"""
_FOREIGN_KEYS = """
SELECT f.conname,
       ARRAY(SELECT a.attname::pg_catalog.text
             FROM pg_catalog.unnest(f.conkey) WITH ORDINALITY AS k(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.conrelid
                  AND a.attnum OPERATOR(pg_catalog.=) k.number
             ORDER BY k.place),
       f.confrelid,
       ARRAY(SELECT a.attname::pg_catalog.text
             FROM pg_catalog.unnest(f.confkey) WITH ORDINALITY AS k(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.confrelid
                  AND a.attnum OPERATOR(pg_catalog.=) k.number
             ORDER BY k.place)
FROM pg_catalog.pg_constraint f
LEFT JOIN pg_catalog.pg_constraint p ON p.oid OPERATOR(pg_catalog.=) f.conparentid
WHERE f.conrelid OPERATOR(pg_catalog.=) %s AND f.contype OPERATOR(pg_catalog.=) 'f'
  AND (p.conrelid OPERATOR(pg_catalog.<>) f.conrelid) IS NOT FALSE
ORDER BY f.conname
"""
_EXPRESSIONS = """
SELECT pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint
WHERE conrelid OPERATOR(pg_catalog.=) %(table)s AND contype OPERATOR(pg_catalog.=) 'c'
UNION ALL
SELECT pg_catalog.pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef
WHERE adrelid OPERATOR(pg_catalog.=) %(table)s
UNION ALL
SELECT pg_catalog.pg_get_indexdef(indexrelid) FROM pg_catalog.pg_index
WHERE indrelid OPERATOR(pg_catalog.=) %(table)s
UNION ALL
SELECT pg_catalog.pg_get_constraintdef(d.oid)
FROM pg_catalog.pg_constraint d
JOIN pg_catalog.pg_attribute a ON a.atttypid OPERATOR(pg_catalog.=) d.contypid
WHERE a.attrelid OPERATOR(pg_catalog.=) %(table)s AND d.contypid OPERATOR(pg_catalog.<>) 0
"""
_DEPENDENCIES = """
SELECT (SELECT pg_catalog.json_object_agg(a.attnum, a.attname) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid OPERATOR(pg_catalog.=) x.stxrelid
          AND a.attnum OPERATOR(pg_catalog.=) ANY (x.stxkeys)),
       s.dependencies::pg_catalog.text
FROM pg_catalog.pg_statistic_ext x
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) x.stxnamespace
JOIN pg_catalog.pg_stats_ext s ON s.statistics_schemaname OPERATOR(pg_catalog.=) n.nspname
     AND s.statistics_name OPERATOR(pg_catalog.=) x.stxname
WHERE x.stxrelid OPERATOR(pg_catalog.=) %s AND s.dependencies IS NOT NULL
"""
_VIEWS = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) 'm' AND c.relispopulated
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
ORDER BY c.oid
"""
_HIDDEN = """
SELECT x.stxname
FROM pg_catalog.pg_statistic_ext x
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) x.stxnamespace
WHERE x.stxrelid OPERATOR(pg_catalog.=) %s AND 'f' OPERATOR(pg_catalog.=) ANY (x.stxkind)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_stats_ext s
                  WHERE s.statistics_schemaname OPERATOR(pg_catalog.=) n.nspname
                    AND s.statistics_name OPERATOR(pg_catalog.=) x.stxname)
ORDER BY x.stxname
"""
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_DEPENDENCY = re.compile(r'"(\d+(?:, \d+)*) => (\d+)": ([0-9.]+)')


@checked_results()
def read_table_statistics(connection: Connection) -> tuple[StoredTable, ...]:
    """Return the tables of a database, over a connection with ``FORMS_OF_VALUES``.

    Raises: ServerError, ConnectionFailedError.
    """
    with server_errors_converted():
        rows = connection.execute(_TABLES).fetchall()
        return tuple(_table(connection, row) for row in rows)


def _table(connection: Connection, row: Sequence[Any]) -> StoredTable:
    oid, root, schema, name, tuples, heap_bytes, size_bytes, is_partitioned, bound = row
    sampled = oid
    if is_partitioned:  # by hash: the partitions are alike, and the largest represents all
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
    """Return the server's estimate; None if the table has rows but was never analysed."""
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
    """Return the string constants in expressions of a table's definition."""
    texts = (str(text) for (text,) in expressions if text is not None)
    return frozenset(one.replace("''", "'") for text in texts for one in _LITERAL.findall(text))


@checked_results()
def filled_views(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return schemas and names of populated materialized views. Raises: ServerError."""
    with server_errors_converted():
        rows = connection.execute(_VIEWS).fetchall()
    return tuple((str(schema), str(name)) for schema, name in rows)
