"""Read how long statements were planned and executed, as pg_stat_statements counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection_errors import failures_in_words
from pgdyno.postgres.connection.control_connection import ControlConnection

_MOST_CHARACTERS = 2000  # of a statement's text
_READ: LiteralString = """
SELECT pg_catalog.min(pg_catalog.left(s.query, %s)), pg_catalog.sum(s.calls)::pg_catalog.int8,
       pg_catalog.sum(s.total_plan_time), pg_catalog.sum(s.total_exec_time),
       pg_catalog.sum(s.rows)::pg_catalog.int8,
       pg_catalog.sum(s.shared_blks_hit OPERATOR(pg_catalog.+) s.shared_blks_read)::pg_catalog.int8,
       pg_catalog.sum(s.wal_records)::pg_catalog.int8
  FROM public.pg_stat_statements s
  JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.dbid
 WHERE d.datname OPERATOR(pg_catalog.=) %s AND s.calls OPERATOR(pg_catalog.>) 0 GROUP BY s.queryid
"""


@dataclass(frozen=True)
class CountedTimes:
    """The counts of one statement; times in ms."""

    sql: str
    calls: int
    planning_ms: float
    executing_ms: float
    rows: int
    blocks: int
    wal_records: int


@answers_of_postgresql()
def read_statement_times(connection: ControlConnection, database: str) -> tuple[CountedTimes, ...]:
    """Return the counts of a database's statements; the extension is in the connection's schema public."""
    with failures_in_words():
        rows = connection.execute(_READ, (_MOST_CHARACTERS, database)).fetchall()
    return tuple(
        CountedTimes(
            str(sql), int(calls), float(planning), float(executing), int(returned), int(blocks), int(wal)
        )
        for sql, calls, planning, executing, returned, blocks, wal in rows
    )
