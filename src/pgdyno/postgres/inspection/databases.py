"""How much data a server holds, and who copies it: sizes of databases, standbys."""

from __future__ import annotations

from typing import LiteralString

from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.server import Standby

_SIZES: LiteralString = """
    SELECT datname,
           CASE WHEN pg_catalog.has_database_privilege(oid, 'CONNECT')
                  OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
                THEN COALESCE(pg_catalog.pg_database_size(oid), 0) END
      FROM pg_catalog.pg_database
     ORDER BY datname"""
_WALSENDERS: LiteralString = """
    SELECT r.application_name, r.state, r.sync_state
      FROM pg_catalog.pg_stat_replication r
      LEFT JOIN pg_catalog.pg_replication_slots s ON s.active_pid OPERATOR(pg_catalog.=) r.pid
     WHERE COALESCE(s.slot_type, 'physical') OPERATOR(pg_catalog.=) 'physical'
       AND COALESCE(r.state, '') OPERATOR(pg_catalog.<>) 'backup'
     UNION ALL
    SELECT slot_name, 'disconnected', 'unknown'
      FROM pg_catalog.pg_replication_slots
     WHERE slot_type OPERATOR(pg_catalog.=) 'physical' AND NOT active
     ORDER BY 1, 2"""


def read_databases_bytes(connection: Connection) -> Fact[int]:
    """Return the size of all databases together; unknown if the role may not see one of them.

    A partial sum would look like a small server, so there is none.
    """
    rows = ask_rows(connection, _SIZES, "sum of pg_database_size()")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    hidden = [name for name, size_bytes in rows.value if size_bytes is None]
    if hidden:
        return Fact(Unknown(f"the role may not see the size of {', '.join(hidden)}"), rows.source)
    return Fact(sum(size_bytes for _, size_bytes in rows.value), rows.source)


def read_standbys(connection: Connection) -> Fact[tuple[Standby, ...]]:
    """Return physical standbys: connected ones, and unused physical slots, whose standby may come back.

    Base backups and logical subscribers are no standbys. Every role sees that a WAL sender exists, but
    not its state.
    """
    rows = ask_rows(connection, _WALSENDERS, "pg_stat_replication, pg_replication_slots")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    if any(state is None for _, state, _ in rows.value):
        reason = f"WAL senders are there ({len(rows.value)}), but the role may not see their activity"
        return Fact(Unknown(reason), rows.source)
    return Fact(tuple(Standby(*row) for row in rows.value), rows.source)
