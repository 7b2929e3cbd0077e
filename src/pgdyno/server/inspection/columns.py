"""Columns of a database's own tables, the types of a statement's parameters, and the cluster's identifier."""

from __future__ import annotations

from psycopg import sql

from pgdyno.model.servers.answers import answers_of_postgresql
from pgdyno.model.servers.columns import Column
from pgdyno.server.connection.connection import Connection
from pgdyno.server.connection.connection_errors import failures_in_words

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, NULL),
       EXISTS (SELECT 1 FROM pg_catalog.pg_index i
               WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid AND i.indisunique AND i.indpred IS NULL
                 AND i.indnkeyatts OPERATOR(pg_catalog.=) 1
                 AND i.indkey[0] OPERATOR(pg_catalog.=) a.attnum),
       pg_catalog.pg_table_is_visible(c.oid),
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
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m,v}'::"char"[])
  AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$)'
ORDER BY n.nspname, c.relname, a.attnum
"""
_IDENTITY = "SELECT system_identifier, pg_catalog.current_database() FROM pg_catalog.pg_control_system()"
_FOREIGN = """
SELECT c.oid::regclass::text FROM pg_catalog.pg_class c WHERE c.relkind OPERATOR(pg_catalog.=) 'f' ORDER BY 1
"""
_NAME = sql.Identifier("pgdyno_capture")
_TYPES = """
SELECT pg_catalog.format_type(t.oid, NULL)
FROM pg_catalog.pg_prepared_statements p,
     pg_catalog.unnest(p.parameter_types) WITH ORDINALITY AS t(oid, place)
WHERE p.name OPERATOR(pg_catalog.=) 'pgdyno_capture' ORDER BY t.place
"""


@answers_of_postgresql()
def read_columns(connection: Connection) -> tuple[Column, ...]:
    """Return the columns of all tables, views among them, in their order. Raises: ServerError."""
    with failures_in_words():
        rows = connection.execute(_COLUMNS).fetchall()
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
    """Return where names without a schema are looked for. Raises: ServerError."""
    with failures_in_words():
        [[path]] = connection.execute("SELECT pg_catalog.current_setting('search_path')").fetchall()
    return str(path)


@answers_of_postgresql()
def foreign_tables(connection: Connection) -> tuple[str, ...]:
    """Return tables of other servers, to which a statement would lead. Raises: ServerError."""
    with failures_in_words():
        rows = connection.execute(_FOREIGN).fetchall()
    return tuple(str(name) for (name,) in rows)


@answers_of_postgresql()
def is_superuser(connection: Connection) -> bool:
    """Whether the connection's role may do anything. Raises: ServerError."""
    with failures_in_words():
        rows = connection.execute("SELECT pg_catalog.current_setting('is_superuser')").fetchall()
    return rows == [("on",)]


@answers_of_postgresql()
def infer_types(connection: Connection, statement: str) -> tuple[str, ...]:
    """Return the types of a statement's parameters: it is prepared and never executed.

    Raises: psycopg.Error if the server cannot prepare it.
    """
    prepare = sql.SQL("PREPARE {} AS ").format(_NAME).as_bytes(connection) + statement.encode()
    connection.execute(prepare, binary=True)  # in this form of the protocol, more than one is refused
    try:
        return tuple(str(one) for (one,) in connection.execute(_TYPES).fetchall())
    finally:
        connection.execute(sql.SQL("DEALLOCATE {}").format(_NAME))
