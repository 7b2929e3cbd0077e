"""Objects that statements name in calls: functions that may write, sequences, and settings of policies."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.postgres.catalogued_tables import Policy
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import unless_locked

# Volatile functions of PostgreSQL that write nothing. All others, as nextval and pg_advisory_lock, count as
# writing, and so do volatile functions of extensions, and those of users that are not immutable: a stable
# function may call a volatile one.
_READING = [
    "random", "random_normal", "setseed", "gen_random_uuid", "uuidv4", "uuidv7", "clock_timestamp",
    "timeofday", "pg_sleep", "pg_sleep_for", "pg_sleep_until", "currval", "lastval", "pg_is_in_recovery",
    "pg_current_wal_lsn", "pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size",
    "pg_database_size", "pg_tablespace_size",
]  # fmt: skip
_WRITING = """
SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
WHERE p.prokind OPERATOR(pg_catalog.<>) 'p' AND CASE
    WHEN n.nspname OPERATOR(pg_catalog.=) 'pg_catalog'
        THEN p.provolatile OPERATOR(pg_catalog.=) 'v'
             AND NOT p.proname OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.name[])
    WHEN p.provolatile OPERATOR(pg_catalog.=) 's'
        THEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                         WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                           AND d.objid OPERATOR(pg_catalog.=) p.oid
                           AND d.deptype OPERATOR(pg_catalog.=) 'e')
    ELSE p.provolatile OPERATOR(pg_catalog.=) 'v' END
"""
_SEQUENCES = """
SELECT pg_catalog.concat_ws('.', pg_catalog.quote_ident(n.nspname), pg_catalog.quote_ident(c.relname)),
       CASE WHEN a.attname IS NOT NULL THEN pg_catalog.concat_ws('.', tn.nspname, t.relname, a.attname) END
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
LEFT JOIN pg_catalog.pg_depend d
     ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
     AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.refobjsubid OPERATOR(pg_catalog.>) 0
     AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
     AND d.deptype OPERATOR(pg_catalog.=) ANY ('{a,i}'::pg_catalog."char"[])
LEFT JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) d.refobjid
LEFT JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) t.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.oid
     AND a.attnum OPERATOR(pg_catalog.=) d.refobjsubid
WHERE c.relkind OPERATOR(pg_catalog.=) 'S' ORDER BY 1
"""
_POLICIES = """
SELECT p.oid, n.nspname, c.relname
FROM pg_catalog.pg_policy p
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) p.polrelid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relrowsecurity ORDER BY n.nspname, c.relname, p.polname
"""
_CONDITIONS = """
SELECT pg_catalog.pg_get_expr(polqual, polrelid), pg_catalog.pg_get_expr(polwithcheck, polrelid)
FROM pg_catalog.pg_policy WHERE oid OPERATOR(pg_catalog.=) %s
"""


@checked_results()
def read_writing_functions(connection: Connection) -> frozenset[str]:
    """Return the names of functions that may write, by their declared volatility. Raises: ServerError."""
    with server_errors_converted():
        rows = connection.execute(_WRITING, (_READING,)).fetchall()
    return frozenset(str(name) for (name,) in rows)


@checked_results()
def read_sequences(connection: Connection) -> Mapping[str, str | None]:
    """Return the sequences, quoted for SQL, each with the path of the column that owns it, or None.

    Raises: ServerError.
    """
    with server_errors_converted():
        rows = connection.execute(_SEQUENCES).fetchall()
    return {str(name): None if column is None else str(column) for name, column in rows}


@checked_results()
def read_policies(connection: Connection) -> tuple[Policy, ...]:
    """Return the conditions of all policies of tables with row-level security.

    That of a policy with a locked table is empty. Raises: ServerError.
    """
    found: list[Policy] = []
    with server_errors_converted():
        for policy, schema, table in connection.execute(_POLICIES).fetchall():
            rows: list[tuple[str | None, ...]] = [("",)]
            with unless_locked(connection):
                rows = connection.execute(_CONDITIONS, (policy,)).fetchall()
            found += (
                Policy(str(schema), str(table), str(one)) for row in rows for one in row if one is not None
            )
    return tuple(found)
