"""Entries of a log, and the load that they have."""

from __future__ import annotations

from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values

READ = "SELECT a FROM t WHERE b = $1"


def entry(message: str, detail: str = "", session: str = "s", line: int | None = 2, **more: str) -> LogEntry:
    """Return an entry of the log of a shop."""
    given = {"severity": "LOG", "database": "shop", "application": "psql", "query": "", **more}
    return LogEntry(at_s=None, session=session, message=message, detail=detail, line=line, **given)


def load(*entries: LogEntry | None, is_keeping: bool = False) -> LoggedLoad:
    """Return the load of a session that the log has from its beginning on."""
    found = LoggedLoad("shop", Values(is_keeping))
    found.read((entry("connection authorized: user=app database=shop"), *entries))
    found.finish()
    return found


def statements(*sql: str, session: str = "s") -> list[LogEntry]:
    """Return the entries of statements, of 2 ms each."""
    return [entry(f"duration: 2.0 ms  statement: {one}", session=session) for one in sql]


def counts(found: LoggedLoad) -> dict[str, tuple[int, float]]:
    """Return calls and milliseconds by statement."""
    return {found.texts.sql[one]: (seen.calls, seen.time_ms) for one, seen in found.seen().items()}
