"""Columns of a database's own tables, the types of a statement's parameters, and the cluster's identifier."""

from __future__ import annotations

from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import failures_in_words
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
# The value that sessions begin with: one of them may have another, perhaps this one.
_SEARCH_PATH = """
SELECT reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'
"""
# One statement, which is parsed before the search path is another one.
_SCHEMAS = """
SELECT pg_catalog.set_config('search_path', %s, true), pg_catalog.current_schemas(true)::pg_catalog.text[]
"""
_TYPES = """
SELECT pg_catalog.format_type(t.oid, NULL)
FROM pg_catalog.unnest(%s::pg_catalog.oid[]) WITH ORDINALITY AS t(oid, place) ORDER BY t.place
"""


@answers_of_postgresql()
def read_columns(connection: Connection, search_path: str) -> tuple[Column, ...]:
    """Return the columns of all tables, views among them, in their order. Raises: ServerError.

    Those count as visible whose table is found by its name alone with this search path.
    """
    path = read_schemas(connection, search_path)
    with failures_in_words(), look(connection, READING):
        rows = connection.execute(_COLUMNS, {"path": path}).fetchall()
    return tuple(
        Column(str(schema), str(table), str(name), str(type_), bool(is_key), bool(is_visible), references)
        for schema, table, name, type_, is_key, is_visible, references in rows
    )


@answers_of_postgresql()
def read_identity(connection: Connection) -> tuple[int, str]:
    """Return the identifier of the cluster, which its physical copies share, and the database's name there.

    A proxy may call the database otherwise. Raises: ServerError.
    """
    with failures_in_words():
        [[identifier, database]] = connection.execute(_IDENTITY).fetchall()
    return int(identifier), str(database)


@answers_of_postgresql()
def read_search_path(connection: Connection) -> str:
    """Return where a session of the role looks for names without a schema. Raises: ServerError."""
    with failures_in_words():
        [[path]] = connection.execute(_SEARCH_PATH).fetchall()
    return str(path)


@answers_of_postgresql()
def read_schemas(connection: Connection, search_path: str | None) -> list[str]:
    """Return the schemas that a search path stands for, pg_catalog among them; None: the role's own.

    Raises: ServerError.
    """
    with failures_in_words(), look(connection, READING):
        [[_, schemas]] = connection.execute(_SCHEMAS, (search_path,)).fetchall()
    return [str(one) for one in schemas]


@answers_of_postgresql()
def foreign_tables(connection: Connection) -> tuple[str, ...]:
    """Return tables of other servers, to which a statement would lead. Raises: ServerError."""
    with failures_in_words():
        rows = connection.execute(_FOREIGN).fetchall()
    return tuple(str(name) for (name,) in rows)


@answers_of_postgresql()
def infer_types(connection: Connection, statement: str, search_path: str) -> tuple[str, ...]:
    """Return the types of a statement's parameters: it is parsed with this search path, and never executed.

    The server runs code of the statement's author even so, a domain's CHECK for a constant: the role must be
    one without rights over the server. Raises: psycopg.Error if the server cannot parse it.
    """
    with look(connection, {"search_path": search_path}):
        types = parameter_types(connection, statement.encode(connection.info.encoding))
    return tuple(str(one) for (one,) in connection.execute(_TYPES, (list(types),)).fetchall())
