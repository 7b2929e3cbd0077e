"""Columns of a database's user tables, a statement's parameter types, and the cluster's identifier."""

from __future__ import annotations

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import READING, look, parameter_types

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, NULL),
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
        LIMIT 1)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m,v}'::pg_catalog."char"[])
  AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
ORDER BY n.nspname, c.relname, a.attnum
"""
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
_TYPES = """
SELECT pg_catalog.format_type(t.oid, NULL)
FROM pg_catalog.unnest(%s::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, place) ORDER BY t.place
"""


@checked_results()
def read_columns(connection: Connection, search_path: str) -> tuple[Column, ...]:
    """Return the columns of all tables and views, in table order. Raises: ServerError.

    A column is visible if ``search_path`` finds its table by the unqualified name.
    """
    path = read_schemas(connection, search_path)
    with server_errors_converted(), look(connection, READING):
        rows = connection.execute(_COLUMNS, {"path": path}).fetchall()
    return tuple(
        Column(str(schema), str(table), str(name), str(type_), bool(is_key), bool(is_visible), references)
        for schema, table, name, type_, is_key, is_visible, references in rows
    )


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
def infer_types(connection: Connection, statement: str, search_path: str) -> tuple[str, ...]:
    """Return a statement's parameter types. It is parsed with this search path, and never executed.

    Even so, the server may run untrusted code, such as a domain's CHECK for a constant: use a role without
    rights beyond the database. Raises: psycopg.Error if the server cannot parse the statement.
    """
    with look(connection, {"search_path": search_path}):
        types = parameter_types(connection, statement.encode(connection.info.encoding))
    return tuple(str(one) for (one,) in connection.execute(_TYPES, (list(types),)).fetchall())
