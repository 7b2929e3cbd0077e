"""Read a server's traffic counters from pg_stat_database, a view that every server has.

Sessions report about once a second. Time idle in transaction is not counted. A single slow statement shows
through its share of the total time.
"""

from __future__ import annotations

from typing import LiteralString

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.statement_counts import Traffic

_SOURCE = "pg_stat_database"
_TRAFFIC: LiteralString = """
    SELECT pg_catalog.sum(xact_commit OPERATOR(pg_catalog.+) xact_rollback)::pg_catalog.int8,
           pg_catalog.sum(active_time),
           pg_catalog.current_setting('track_activities')::pg_catalog.bool
           AND pg_catalog.current_setting('track_counts')::pg_catalog.bool
      FROM pg_catalog.pg_stat_database"""


@checked_results()
def read_traffic(connection: Connection) -> Fact[Traffic]:
    """Return the current counters; unknown before PostgreSQL 14, or if counting is switched off.

    Raises: ConnectionFailedError if the connection is lost.
    """
    rows = ask_rows(connection, _TRAFFIC, _SOURCE)
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, _SOURCE)
    transactions, active_ms, is_counted = rows.value[0]
    if not is_counted:
        return unknown("track_activities or track_counts is off", _SOURCE)
    return Fact(Traffic(int(transactions), float(active_ms)), _SOURCE)
