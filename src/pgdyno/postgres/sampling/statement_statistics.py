"""Read pg_stat_statements for one database, counters and texts, and a server's traffic.

Before version 1.9 of the extension (PostgreSQL 14), nested statements cannot be distinguished from top-level
ones. A server's traffic is read from pg_stat_database, a view that every server has: sessions report to it
about once a second, time idle in transaction is not counted, and a single slow statement shows through its
share of the total time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.connection.query import AS_BYTES, ask_rows, text_of
from pgdyno.postgres.statement_counts import Ended, Seen, StatementCounts, Traffic

LIBRARY = "pg_stat_statements"
"""The name of the extension's library in shared_preload_libraries."""
LEAST_MAJOR = 13
"""The first PostgreSQL in which the extension counts planning."""
_WITH_TOP_LEVEL = (1, 9)
_LEAST = (1, 8)  # PostgreSQL 13
_WITH_EVICTIONS = 140_000
_INSTALLED = """
SELECT n.nspname, e.extversion FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
"""
_OWN = "SELECT pg_catalog.current_database()"
_MAY_READ = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
_COUNTS = sql.SQL("""
SELECT queryid, {top_level}, pg_catalog.sum(calls)::pg_catalog.int8,
       pg_catalog.sum(total_exec_time)::pg_catalog.float8, pg_catalog.sum(rows)::pg_catalog.int8,
       pg_catalog.sum(shared_blks_hit OPERATOR(pg_catalog.+) shared_blks_read)::pg_catalog.int8,
       pg_catalog.sum(wal_records)::pg_catalog.int8, pg_catalog.sum(plans)::pg_catalog.int8
FROM {function}(false) WHERE queryid IS NOT NULL AND dbid OPERATOR(pg_catalog.=) (
    SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) %s)
GROUP BY 1, 2
""")
_TEXTS = sql.SQL(f"""
SELECT queryid, {AS_BYTES.format("pg_catalog.min(query)")} FROM {{function}}(true)
WHERE queryid OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.int8[]) AND dbid OPERATOR(pg_catalog.=) (
    SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) %s)
GROUP BY 1
""")  # noqa: S608 — constants
_OTHER_ENCODING = (psycopg.errors.UntranslatableCharacter, psycopg.errors.CharacterNotInRepertoire)
_TRANSACTIONS = """
SELECT xact_commit, xact_rollback FROM pg_catalog.pg_stat_database WHERE datname OPERATOR(pg_catalog.=) %s
"""
_INFO = sql.SQL("SELECT dealloc, stats_reset::pg_catalog.text FROM {function}()")
_COUNTING = """
SELECT name, setting, NULL::pg_catalog.text, NULL::pg_catalog.text FROM pg_catalog.pg_settings
 WHERE name OPERATOR(pg_catalog.=) ANY (ARRAY['compute_query_id', 'pg_stat_statements.track'])
   AND source OPERATOR(pg_catalog.<>) ALL (ARRAY['global', 'user', 'database', 'database user'])
UNION ALL
SELECT pg_catalog.split_part(one, '=', 1), pg_catalog.split_part(one, '=', 2),
       CASE WHEN s.setrole OPERATOR(pg_catalog.<>) 0
            THEN pg_catalog.pg_get_userbyid(s.setrole)::pg_catalog.text END, d.datname::pg_catalog.text
  FROM pg_catalog.pg_db_role_setting s
 CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS one
  LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.setdatabase
 WHERE s.setdatabase OPERATOR(pg_catalog.=) 0 OR d.datname OPERATOR(pg_catalog.=) %s
"""
_NOT_COUNTED = {
    "compute_query_id": frozenset({"off", "false", "no", "0"}),
    "pg_stat_statements.track": frozenset({"none"}),
}
"""Values with which statements are not counted, in the forms that roles' and databases' settings have."""
MOST_CHARACTERS = 2000
"""Of a statement's text, for display."""
WHOLE_TEXT = (1 << 31) - 1
_READ: LiteralString = """
SELECT pg_catalog.min(pg_catalog.left(s.query, %s)), pg_catalog.sum(s.calls)::pg_catalog.int8,
       pg_catalog.sum(s.total_plan_time), pg_catalog.sum(s.total_exec_time),
       pg_catalog.sum(s.rows)::pg_catalog.int8,
       pg_catalog.sum(s.shared_blks_hit OPERATOR(pg_catalog.+) s.shared_blks_read)::pg_catalog.int8,
       pg_catalog.sum(s.wal_records)::pg_catalog.int8, pg_catalog.sum(s.wal_bytes)::pg_catalog.int8, s.queryid
  FROM public.pg_stat_statements s
  JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.dbid
 WHERE d.datname OPERATOR(pg_catalog.=) %s AND s.calls OPERATOR(pg_catalog.>) 0
   AND s.queryid IS NOT NULL GROUP BY s.queryid
"""


@dataclass(frozen=True)
class CountedTimes:
    """The counters of one statement; times in ms. ``id`` is the server's query identifier."""

    sql: str
    calls: int
    planning_ms: float
    executing_ms: float
    rows: int
    blocks: int
    wal_records: int
    wal_bytes: int
    id: int


@dataclass(frozen=True)
class StatementStatistics:
    """The extension in the connection's database, read for the statements of ``database``."""

    connection: Connection
    schema: str
    version: tuple[int, ...]
    database: str

    @checked_results()
    def read(self) -> StatementCounts:
        """Return all current counters. Raises: ServerError, ConnectionFailedError."""
        top_level = sql.SQL("toplevel" if self._has_top_level else "true")
        counts = _COUNTS.format(top_level=top_level, function=self._name("pg_stat_statements"))
        with server_errors_converted():
            rows = self.connection.execute(counts, (self.database,)).fetchall()
            [[committed, rolled_back]] = self.connection.execute(_TRANSACTIONS, (self.database,)).fetchall()
            evicted, reset_at = self._info()
        top = [row for row in rows if row[1]]
        return StatementCounts(
            {int(row[0]): Seen(int(row[2]), float(row[3]), *map(int, row[4:7])) for row in top},
            {int(row[0]): int(row[7]) for row in top},
            sum(int(row[2]) for row in rows if not row[1]),
            Ended(int(committed), int(rolled_back)),
            evicted,
            reset_at,
        )

    @checked_results()
    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """Return statements' texts by query id, without those that are evicted, lost, or not UTF-8.

        Raises: ServerError.
        """
        texts = _TEXTS.format(function=self._name("pg_stat_statements"))
        with server_errors_converted():
            try:
                rows = self.connection.execute(texts, (list(ids), self.database)).fetchall()
            except _OTHER_ENCODING as error:
                raise ServerError(
                    "the texts of pg_stat_statements cannot be read in this database",
                    detail=f"another database's is in another encoding: {error.diag.message_primary}",
                    hint="capture the workload from a log (--log), or remove the statements of the other "
                    "database: SELECT pg_stat_statements_reset(0, its OID)",
                ) from error
        found = ((int(one), text_of(data)) for one, data in rows if data is not None)
        return {one: text for one, text in found if text is not None}

    @checked_results()
    def not_counting(self) -> tuple[str, ...]:
        """Return settings with which statements are not counted, and the role and database of each.

        Raises: ServerError.
        """
        with server_errors_converted():
            rows = self.connection.execute(_COUNTING, (self.database,)).fetchall()
        return tuple(
            f"{name} = {value}{_whom(role, database)}"
            for name, value, role, database in rows
            if str(value).lower() in _NOT_COUNTED.get(str(name).lower(), ())
        )

    @property
    def _has_top_level(self) -> bool:
        return self.version >= _WITH_TOP_LEVEL

    def _info(self) -> tuple[int | None, str | None]:
        if not self._has_top_level:
            return None, None
        info = _INFO.format(function=self._name("pg_stat_statements_info"))
        [[evicted, reset_at]] = self.connection.execute(info).fetchall()
        return int(evicted), str(reset_at)

    def _name(self, function: str) -> sql.Identifier:
        return sql.Identifier(self.schema, function)


def _whom(role: str | None, database: str | None) -> str:
    """Return the role and the database that a setting is for; empty for all."""
    given = [f"{kind} {name}" for kind, name in (("role", role), ("database", database)) if name]
    return f" ({', '.join(given)})" if given else ""


@checked_results()
def find_statement_statistics(
    connection: Connection, *, database: str | None = None, of_others: bool = True
) -> StatementStatistics:
    """Return the extension in the connection's database; it counts the statements of all databases.

    ``database``: read the statements of this database (None: the connection's). ``of_others``: require the
    right to see other roles' statements.

    Raises: ServerError if the extension is missing or too old, or the role lacks the right.
    """
    with server_errors_converted():
        installed = connection.execute(_INSTALLED).fetchall()
        [[may_read]] = connection.execute(_MAY_READ).fetchall()
        [[own]] = connection.execute(_OWN).fetchall()
    if not installed:
        raise ServerError(
            "the database has no pg_stat_statements: its statements are not counted",
            hint="add it to shared_preload_libraries, restart the server, and CREATE EXTENSION "
            "pg_stat_statements in this database",
        )
    if of_others and may_read is not True:
        raise ServerError(
            "the role may not see other roles' statements",
            hint="GRANT pg_read_all_stats TO the role, or connect as a superuser",
        )
    [[schema, version]] = installed
    numbers = tuple(int(part) for part in str(version).split("."))
    if numbers < _LEAST:
        raise ServerError(
            f"version {version} of pg_stat_statements lacks required counters",
            hint="ALTER EXTENSION pg_stat_statements UPDATE; PostgreSQL 13 and later have them",
        )
    return StatementStatistics(connection, str(schema), numbers, database or str(own))


@checked_results()
def read_statement_times(
    connection: ControlConnection, database: str, most_characters: int = MOST_CHARACTERS
) -> tuple[CountedTimes, ...]:
    """Return the counters of a database's statements; the extension must be in the schema public.

    Raises: ServerError.
    """
    with server_errors_converted():
        rows = connection.execute(_READ, (most_characters, database)).fetchall()
    return tuple(
        CountedTimes(str(sql), int(calls), float(planning), float(executing), *map(int, counts))
        for sql, calls, planning, executing, *counts in rows
    )


@checked_results()
def read_evictions(connection: ControlConnection) -> int:
    """Return how often statements were evicted so far; 0 before PostgreSQL 14, which does not count it.

    The extension must be in the schema public. Raises: ServerError.
    """
    if connection.info.server_version < _WITH_EVICTIONS:
        return 0
    with server_errors_converted():
        [[evicted]] = connection.execute("SELECT dealloc FROM public.pg_stat_statements_info").fetchall()
    return int(evicted)


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
