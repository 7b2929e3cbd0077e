"""The scale of a database that pgbench has initialised."""

from __future__ import annotations

from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import failures_in_words

# A plain table alone is read: a view or a policy could have code of its owner.
_IS_TABLE = """
SELECT EXISTS (
    SELECT 1 FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE n.nspname OPERATOR(pg_catalog.=) 'public' AND c.relname OPERATOR(pg_catalog.=) 'pgbench_branches'
      AND c.relkind OPERATOR(pg_catalog.=) 'r' AND NOT c.relrowsecurity)
"""
_SCALE = "SELECT pg_catalog.count(*) FROM ONLY public.pgbench_branches"


@answers_of_postgresql()
def read_pgbench_scale(connection: Connection) -> int | None:
    """Return the number of pgbench's branches; None if there are none. Raises: ServerError."""
    with failures_in_words():
        [[is_table]] = connection.execute(_IS_TABLE).fetchall()
        if not is_table:
            return None
        [[scale]] = connection.execute(_SCALE).fetchall()
    return int(scale) or None
