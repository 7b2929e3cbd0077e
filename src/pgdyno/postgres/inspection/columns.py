"""Columns of a database's user tables and their values, parameter types, and the cluster's identifier.

Values are not part of a workload file, which has positions of a log's values in the order of a column.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from psycopg import sql

from pgdyno.postgres.catalogued_tables import Column, ColumnValues, IndexScan
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import READING, look, parameter_types, unless_locked
from pgdyno.postgres.connection.query import AS_BYTES, text_of

# 1042 and 1043 are character(n) and character varying(n); their modifier is n + 4.
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attrelid, a.attnum, a.atttypid AS type, a.atttypmod AS modifier, a.attnotnull AS is_required,
           false AS is_checked
    FROM pg_catalog.pg_attribute a
    WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype,
           CASE WHEN b.modifier OPERATOR(pg_catalog.<) 0 THEN t.typtypmod ELSE b.modifier END,
           b.is_required OR t.typnotnull,
           b.is_checked OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
                                   WHERE k.contypid OPERATOR(pg_catalog.=) t.oid
                                     AND k.contype OPERATOR(pg_catalog.=) 'c')
    FROM base b JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) b.type
    WHERE t.typtype OPERATOR(pg_catalog.=) 'd'
)
SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(b.type, NULL),
       EXISTS (SELECT 1 FROM pg_catalog.pg_index i
               WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid AND i.indisunique AND i.indpred IS NULL
                 AND i.indnkeyatts OPERATOR(pg_catalog.=) 1
                 AND i.indkey[0] OPERATOR(pg_catalog.=) a.attnum),
       c.oid OPERATOR(pg_catalog.=) (
           SELECT v.oid FROM pg_catalog.pg_class v
           JOIN pg_catalog.pg_namespace vn ON vn.oid OPERATOR(pg_catalog.=) v.relnamespace
           WHERE v.relname OPERATOR(pg_catalog.=) c.relname
             AND vn.nspname OPERATOR(pg_catalog.=) ANY (%(path)s::pg_catalog.name[])
           ORDER BY pg_catalog.array_position(%(path)s::pg_catalog.name[], vn.nspname) LIMIT 1),
       (SELECT pg_catalog.concat_ws('.', rn.nspname, rc.relname, ra.attname)
        FROM pg_catalog.pg_constraint f
        JOIN pg_catalog.pg_class rc ON rc.oid OPERATOR(pg_catalog.=) f.confrelid
        JOIN pg_catalog.pg_namespace rn ON rn.oid OPERATOR(pg_catalog.=) rc.relnamespace
        JOIN pg_catalog.pg_attribute ra ON ra.attrelid OPERATOR(pg_catalog.=) f.confrelid
             AND ra.attnum OPERATOR(pg_catalog.=) f.confkey[1]
        WHERE f.conrelid OPERATOR(pg_catalog.=) c.oid AND f.contype OPERATOR(pg_catalog.=) 'f'
          AND f.conkey OPERATOR(pg_catalog.=) ARRAY[a.attnum]
        LIMIT 1),
       pg_catalog.has_schema_privilege(n.oid, 'USAGE')
           AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'),
       CASE WHEN b.type OPERATOR(pg_catalog.=) ANY ('{1042,1043}'::pg_catalog.oid[])
                 AND b.modifier OPERATOR(pg_catalog.>) 4
            THEN b.modifier OPERATOR(pg_catalog.-) 4 END,
       b.is_required,
       b.is_checked OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
                               WHERE k.conrelid OPERATOR(pg_catalog.=) c.oid
                                 AND k.contype OPERATOR(pg_catalog.=) 'c'
                                 AND a.attnum OPERATOR(pg_catalog.=) ANY (k.conkey)),
       c.relkind OPERATOR(pg_catalog.=) 'r' AND c.relpages OPERATOR(pg_catalog.=) 0
           AND pg_catalog.pg_stat_get_live_tuples(c.oid) OPERATOR(pg_catalog.=) 0,
       c.relkind OPERATOR(pg_catalog.=) 'v'
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN base b ON b.attrelid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_type bt ON bt.oid OPERATOR(pg_catalog.=) b.type AND bt.typtype OPERATOR(pg_catalog.<>) 'd'
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
     AND a.attnum OPERATOR(pg_catalog.=) b.attnum
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m,v}'::pg_catalog."char"[])
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
ORDER BY n.nspname, c.relname, a.attnum
"""
_NAMED = """
ROWS FROM (pg_catalog.unnest(%s::pg_catalog.text[]), pg_catalog.unnest(%s::pg_catalog.text[]))
    AS w(schema, name)
JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) w.schema
JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
     AND c.relname OPERATOR(pg_catalog.=) w.name
"""
_VIEW = f"""
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM {_NAMED} WHERE c.relkind OPERATOR(pg_catalog.=) 'v'
"""  # noqa: S608 — constants
_BYTES = f"SELECT pg_catalog.pg_relation_size(c.oid) FROM {_NAMED}"  # noqa: S608 — constants
# Of several indexes that begin with a column, the smallest comes last.
_SCANS = f"""
SELECT w.schema, w.name, a.attname, c.reltuples::pg_catalog.float8, c.relpages,
       c.relallvisible, x.relpages, s.correlation::pg_catalog.float8
FROM {_NAMED}
JOIN pg_catalog.pg_index i ON i.indrelid OPERATOR(pg_catalog.=) c.oid AND i.indisvalid AND i.indpred IS NULL
JOIN pg_catalog.pg_class x ON x.oid OPERATOR(pg_catalog.=) i.indexrelid
JOIN pg_catalog.pg_am m ON m.oid OPERATOR(pg_catalog.=) x.relam AND m.amname OPERATOR(pg_catalog.=) 'btree'
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
     AND a.attnum OPERATOR(pg_catalog.=) i.indkey[0]
JOIN pg_catalog.pg_stats s ON s.schemaname OPERATOR(pg_catalog.=) n.nspname
     AND s.tablename OPERATOR(pg_catalog.=) c.relname AND s.attname OPERATOR(pg_catalog.=) a.attname
     AND NOT s.inherited AND s.correlation IS NOT NULL
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{{r,m}}'::pg_catalog."char"[])
  AND c.reltuples OPERATOR(pg_catalog.>=) 1 AND c.relpages OPERATOR(pg_catalog.>=) 1
  AND x.relpages OPERATOR(pg_catalog.>=) 1
ORDER BY x.relpages DESC, x.oid
"""  # noqa: S608 — constants
_MOST_VALUES = 10_000  # arbitrary: a few hundred kB per column
_LONGEST = 200  # characters of a value
_DENSE = 1.1  # largest ratio of a key range to its rows for which the range replaces a sample
# A partitioned table has a number of rows only after an ANALYZE of the table itself.
_SIZE = """
SELECT GREATEST(c.reltuples::pg_catalog.float8,
                (SELECT pg_catalog.sum(GREATEST(l.reltuples, 0)::pg_catalog.float8)
                 FROM pg_catalog.pg_partition_tree(c.oid) t
                 JOIN pg_catalog.pg_class l ON l.oid OPERATOR(pg_catalog.=) t.relid WHERE t.isleaf))
FROM pg_catalog.pg_class c
WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(%s)
  AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m}'::pg_catalog."char"[])
"""
_SEED = "SELECT pg_catalog.setseed(0.5)"
_ENDS = sql.SQL("SELECT pg_catalog.min({column}), pg_catalog.max({column}) FROM {table}")
_VALUES = sql.SQL(f"""
SELECT {AS_BYTES.format("{column}::pg_catalog.text")} FROM {{table}} {{sample}}
WHERE {{column}} IS NOT NULL AND pg_catalog.length({{column}}::pg_catalog.text) OPERATOR(pg_catalog.<=) %s
ORDER BY pg_catalog.random() LIMIT %s
""")  # noqa: S608 — constants
_COUNTS = sql.SQL("SELECT pg_catalog.count({column}), pg_catalog.count(*) FROM {table} {sample}")
_WORD = re.compile(r"\w+")
_FILLED = re.compile(r'\b(?:insert\s+into|merge\s+into|copy)\s+(?:"?\w+"?\s*\.\s*)?"?(\w+)', re.IGNORECASE)
_MOST = 1 << 40  # more rows or blocks than fit into a table
_Table: TypeAlias = tuple[str, str]
"""Schema and name."""
_IDENTITY = "SELECT system_identifier, pg_catalog.current_database() FROM pg_catalog.pg_control_system()"
_FOREIGN = """
SELECT c.oid::pg_catalog.regclass::pg_catalog.text
FROM pg_catalog.pg_class c WHERE c.relkind OPERATOR(pg_catalog.=) 'f' ORDER BY 1
"""
# The value at session start; this session may have changed it.
_SEARCH_PATH = """
SELECT reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'
"""
# One statement: it is parsed before the search path changes.
_SCHEMAS = """
SELECT pg_catalog.set_config('search_path', %s, true), pg_catalog.current_schemas(true)::pg_catalog.text[]
"""
_PARSED_WITHIN = "2s"  # it takes milliseconds, without waits for locks
_TYPES = """
SELECT pg_catalog.format_type(t.oid, NULL)
FROM pg_catalog.unnest(%s::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, place) ORDER BY t.place
"""


@checked_results()
def read_columns(connection: Connection, search_path: str, texts: Collection[str] = ()) -> tuple[Column, ...]:
    """Return the columns of all tables and views, in table order. Raises: ServerError.

    A column is visible if ``search_path`` finds its table by the unqualified name. ``texts`` are statements:
    the queries of the views that they name are read, and the index scans of tables named with an OFFSET. A
    table that they fill does not count as empty.
    """
    path = read_schemas(connection, search_path)
    with server_errors_converted(), look(connection, READING):
        rows = connection.execute(_COLUMNS, {"path": path}).fetchall()
        tables = {(str(schema), str(table)): bool(is_view) for schema, table, *_, is_view in rows}
        views = {one for one, is_view in tables.items() if is_view}
        queries = {**dict.fromkeys(views, ""), **_queries_of(connection, views, texts)}
        skipping = [one for one in texts if "offset" in _words(one)]
        filled = {table.casefold() for one in texts for table in _FILLED.findall(one)}
        scans = _scans_of(connection, _named(tables.keys() - views, skipping))
        referenced = {str(references) for _, _, _, _, _, _, references, *_ in rows if references}
        empty = _without_blocks(
            connection,
            {
                (str(schema), str(table))
                for schema, table, name, *_, is_empty, _ in rows
                if is_empty and f"{schema}.{table}.{name}" in referenced
            },
        )
    return tuple(
        Column(
            str(schema),
            str(table),
            str(name),
            str(type_),
            bool(is_key),
            bool(is_visible),
            references,
            bool(is_readable),
            queries.get((schema, table)),
            scans.get((schema, table, name)),
            None if length is None else int(length),
            bool(is_required),
            bool(is_checked),
            (schema, table) in empty and str(table).casefold() not in filled,
        )
        for schema, table, name, type_, is_key, is_visible, references, is_readable, length, *states in rows
        for is_required, is_checked, *_ in [states]
    )


def _queries_of(
    connection: Connection, views: AbstractSet[_Table], texts: Collection[str]
) -> dict[_Table, str]:
    """Return the queries of the views that statements name, and of the views in these queries.

    Others are not read, because a lock on one of their tables would delay it, and neither are locked ones.
    """
    found: dict[_Table, str] = {}
    while named := _named(views - found.keys(), texts):
        found |= dict.fromkeys(named, "")
        for one in named:
            with unless_locked(connection):
                rows = connection.execute(_VIEW, _as_arrays([one])).fetchall()
                found[one] = "".join(str(query) for (query,) in rows)
        texts = [found[one] for one in named]
    return found


def _without_blocks(connection: Connection, tables: Collection[_Table]) -> set[_Table]:
    """Return the tables that have no blocks, without locked ones: lost statistics also show no rows."""
    found: set[_Table] = set()
    for one in tables:
        with unless_locked(connection):
            rows = connection.execute(_BYTES, _as_arrays([one])).fetchall()
            found |= {one} if rows == [(0,)] else set()
    return found


def _scans_of(connection: Connection, tables: Collection[_Table]) -> dict[tuple[str, str, str], IndexScan]:
    """Return the index scans of tables by column, with the smallest index of each."""
    rows = connection.execute(_SCANS, _as_arrays(tables)).fetchall() if tables else []
    return {
        (schema, table, column): IndexScan(
            rows=_clamped(tuples, 1, _MOST),
            table_blocks=_clamped(blocks, 1, _MOST),
            visible_blocks=_clamped(visible, 0, _MOST),
            index_blocks=_clamped(of_index, 1, _MOST),
            correlation=_clamped(correlation, -1, 1),
        )
        for schema, table, column, tuples, blocks, visible, of_index, correlation in rows
    }


def _clamped(value: float, low: float, high: float) -> float:
    """Return an estimate within the limits, also of a server that is not PostgreSQL."""
    return min(max(low, float(value)), high)


def _named(tables: AbstractSet[_Table], texts: Collection[str]) -> list[_Table]:
    """Return the tables that statements may name: all words of their names are in the texts."""
    words = {word for text in texts for word in _words(text)}
    return [one for one in tables if _words(one[1]) <= words]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _as_arrays(tables: Collection[_Table]) -> tuple[list[str], list[str]]:
    return [schema for schema, _ in tables], [name for _, name in tables]


@checked_results()
def read_identity(connection: Connection) -> tuple[int, str]:
    """Return the cluster's system identifier, shared by its physical copies, and the database's real name.

    A proxy may use a different database name. Raises: ServerError.
    """
    with server_errors_converted():
        [[identifier, database]] = connection.execute(_IDENTITY).fetchall()
    return int(identifier), str(database)


@checked_results()
def read_search_path(connection: Connection) -> str:
    """Return the search path of a new session of the role. Raises: ServerError."""
    with server_errors_converted():
        [[path]] = connection.execute(_SEARCH_PATH).fetchall()
    return str(path)


@checked_results()
def read_schemas(connection: Connection, search_path: str | None) -> list[str]:
    """Return the existing schemas in a search path, including pg_catalog; None: the role's search path.

    Raises: ServerError.
    """
    with server_errors_converted(), look(connection, READING):
        [[_, schemas]] = connection.execute(_SCHEMAS, (search_path,)).fetchall()
    return [str(one) for one in schemas]


@checked_results()
def foreign_tables(connection: Connection) -> tuple[str, ...]:
    """Return the foreign tables: a statement on them would access other servers. Raises: ServerError."""
    with server_errors_converted():
        rows = connection.execute(_FOREIGN).fetchall()
    return tuple(str(name) for (name,) in rows)


@checked_results()
def infer_types(
    connection: Connection, statement: str, search_path: str, lock_timeout_s: float
) -> tuple[str, ...]:
    """Return a statement's parameter types. It is parsed with this search path, and never executed.

    Even so, the server may run untrusted code, such as a domain's CHECK for a constant: use a role without
    rights beyond the database. Raises: psycopg.Error if the server cannot parse the statement.
    """
    lock_timeout = f"{max(1, round(lock_timeout_s * 1000))}ms"  # 0 would be none
    limits = {"lock_timeout": lock_timeout, "statement_timeout": _PARSED_WITHIN}
    with look(connection, {"search_path": search_path, **limits}):
        types = parameter_types(connection, statement.encode(connection.info.encoding))
    return tuple(str(one) for (one,) in connection.execute(_TYPES, (list(types),)).fetchall())


@checked_results()
def read_column_values(connection: Connection, column: Column) -> ColumnValues:
    """Return values of a table's column. Raises: ServerError, e.g. without SELECT."""
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
        return ColumnValues(dense=(int(ends[0]), int(ends[1])), highest=int(ends[1]), rows=rows)
    connection.execute(_SEED)  # equal rows give equal samples
    sample, is_sampled = _sample(rows), rows > 2 * _MOST_VALUES
    found = connection.execute(_VALUES.format(**names, sample=sample), (_LONGEST, _MOST_VALUES)).fetchall()
    highest = None if ends is None or ends[1] is None else int(ends[1])
    texts = [text_of(value) for (value,) in found]
    known = tuple(text for text in texts if text is not None)
    counted = float(len(found))
    if len(found) == _MOST_VALUES or is_sampled:
        [[filled, all_]] = connection.execute(_COUNTS.format(**names, sample=sample)).fetchall()
        counted = filled * max(1.0, rows / max(1, all_)) if is_sampled else float(filled)
    return ColumnValues(known, highest=highest, unreadable=len(texts) - len(known), rows=counted)


def _sample(rows: float) -> sql.Composable:
    """Return a TABLESAMPLE clause for a large table, for about twice the rows that are kept."""
    share = 100 * 2 * _MOST_VALUES / rows
    if share >= 100:
        return sql.SQL("")
    return sql.SQL("TABLESAMPLE SYSTEM ({}) REPEATABLE (1)").format(sql.Literal(share))
