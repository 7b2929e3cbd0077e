"""The scale factor of a database initialised by pgbench."""

from __future__ import annotations

from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted

# Only a plain table is read: a view or a policy could run its owner's code.
_IS_TABLE = """
SELECT EXISTS (
    SELECT 1 FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE n.nspname OPERATOR(pg_catalog.=) 'public' AND c.relname OPERATOR(pg_catalog.=) 'pgbench_branches'
      AND c.relkind OPERATOR(pg_catalog.=) 'r' AND NOT c.relrowsecurity)
"""
_SCALE = "SELECT pg_catalog.count(*) FROM ONLY public.pgbench_branches"


@checked_results()
def read_pgbench_scale(connection: Connection) -> int | None:
    """Return the number of rows in pgbench_branches; None if empty or missing. Raises: ServerError."""
    with server_errors_converted():
        [[is_table]] = connection.execute(_IS_TABLE).fetchall()
        if not is_table:
            return None
        [[scale]] = connection.execute(_SCALE).fetchall()
    return int(scale) or None
