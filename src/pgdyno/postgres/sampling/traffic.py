"""Read a server's own traffic counters from pg_stat_database.

Every server has that view.

Sessions report what they did about once a second. What waits for a client within a transaction is in no
figure. A single slow statement shows by its share of the whole time.
"""

from __future__ import annotations

from typing import LiteralString

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.answers import answers_of_postgresql
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


@answers_of_postgresql()
def read_traffic(connection: Connection) -> Fact[Traffic]:
    """Return all that was counted so far; unknown before PostgreSQL 14, or if nothing is counted.

    Raises: ConnectionFailedError if the connection is gone.
    """
    rows = ask_rows(connection, _TRAFFIC, _SOURCE)
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, _SOURCE)
    transactions, active_ms, is_counted = rows.value[0]
    if not is_counted:
        return unknown("track_activities or track_counts is off", _SOURCE)
    return Fact(Traffic(int(transactions), float(active_ms)), _SOURCE)
