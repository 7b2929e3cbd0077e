"""All server counters relevant to a database's work, as a flat mapping by dotted name.

``pg_stat_wal.wal_fpi``, ``pg_stat_checkpointer.num_timed``, ``pg_stat_bgwriter.buffers_clean``,
``pg_stat_database.blks_read`` (of this database), ``pg_stat_all_tables.autovacuum_count`` (summed over this
database's user tables), ``pg_stat_io.client_backend.relation.normal.reads``. All columns of the server's
version are included; views that it lacks are absent. Server-wide views count all databases, and all
counters include pgdyno's own queries.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, LiteralString, TypeAlias

import psycopg

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_VIEWS: Mapping[str, LiteralString] = {
    "pg_stat_wal": """
SELECT 'pg_stat_wal.' OPERATOR(pg_catalog.||) key, value
FROM pg_catalog.pg_stat_wal v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))""",
    "pg_stat_checkpointer": """
SELECT 'pg_stat_checkpointer.' OPERATOR(pg_catalog.||) key, value
FROM pg_catalog.pg_stat_checkpointer v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))""",
    "pg_stat_bgwriter": """
SELECT 'pg_stat_bgwriter.' OPERATOR(pg_catalog.||) key, value
FROM pg_catalog.pg_stat_bgwriter v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))""",
    "pg_stat_database": """
SELECT 'pg_stat_database.' OPERATOR(pg_catalog.||) key, value
FROM pg_catalog.pg_stat_database v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))
WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()""",
    "pg_stat_user_tables": """
SELECT 'pg_stat_all_tables.' OPERATOR(pg_catalog.||) key, value
FROM pg_catalog.pg_stat_user_tables v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))""",
    "pg_stat_io": """
SELECT pg_catalog.replace(
           pg_catalog.concat_ws('.', 'pg_stat_io', backend_type, object, context, key), ' ', '_'), value
FROM pg_catalog.pg_stat_io v, pg_catalog.jsonb_each(pg_catalog.to_jsonb(v))""",
}
_KNOWN: LiteralString = """
SELECT relname FROM pg_catalog.pg_class
WHERE relnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
  AND relname OPERATOR(pg_catalog.=) ANY (%s)
"""
_SUMS: LiteralString = """
SELECT name, pg_catalog.sum(value::pg_catalog.float8) FROM ({}) AS counters (name, value)
WHERE pg_catalog.jsonb_typeof(value) OPERATOR(pg_catalog.=) 'number' GROUP BY name
"""
_GAUGES = frozenset(
    {
        "datid",
        "numbackends",
        "relid",
        "n_live_tup",
        "n_dead_tup",
        "n_mod_since_analyze",
        "n_ins_since_vacuum",
        "op_bytes",
    }
)
"""Numbers in these views that are not counters."""

_CLIENTS: LiteralString = """
SELECT pid FROM pg_catalog.pg_stat_activity
WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
  AND backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
"""
_DEAD_TUPLES: LiteralString = (
    "SELECT COALESCE(pg_catalog.sum(n_dead_tup), 0) FROM pg_catalog.pg_stat_user_tables"
)
_POLL_S = 0.01


def read_counters(connection: Connection) -> dict[str, float]:
    """Return all current counters. They only grow, unless they are reset or tables are dropped."""
    known = connection.execute(_KNOWN, (list(_VIEWS),))
    parts: list[LiteralString] = [_VIEWS[name] for (name,) in sorted(known.fetchall())]
    rows = connection.execute(_SUMS.format(" UNION ALL ".join(parts)))
    return {name: value for name, value in rows.fetchall() if name.rpartition(".")[2] not in _GAUGES}


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return counter differences; for pg_stat_io, with hundreds of counters, only the nonzero ones."""
    found = {name: value - before.get(name, 0.0) for name, value in sorted(after.items())}
    return {name: value for name, value in found.items() if value or not name.startswith("pg_stat_io.")}


def read_dead_tuples(connection: Connection) -> int:
    """Return the server's estimate of dead rows in all user tables of this database."""
    row = connection.execute(_DEAD_TUPLES).fetchone()
    return int(row[0]) if row is not None else 0


def read_database_bytes(connection: Connection) -> int:
    """Return the size of this database."""
    row = connection.execute("SELECT pg_catalog.pg_database_size(pg_catalog.current_database())").fetchone()
    return int(row[0]) if row is not None else 0


def client_pids(connection: Connection) -> frozenset[int]:
    """Return the process ids of the other client backends in this database."""
    return frozenset(pid for (pid,) in connection.execute(_CLIENTS).fetchall())


def wait_for_clients_to_end(connection: Connection, others: Collection[int], limit_s: float) -> None:
    """Wait until only ``others`` remain, for ``limit_s`` at most: backends report pending counters on exit.

    Backends that take longer still report their counters every second while they work.
    """
    deadline_s = time.monotonic() + limit_s
    while client_pids(connection) - set(others) and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)


def directory_bytes(directory: Path) -> int | None:
    """Return the apparent size of a directory tree, as ``du -b`` does; None if it is not readable.

    Links are not followed. Files that disappear during the scan are not counted.
    """
    try:
        return directory.stat().st_size + sum(map(_entry_bytes, os.scandir(directory)))
    except PermissionError:
        return None


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        own = entry.stat(follow_symlinks=False).st_size
        if entry.is_dir(follow_symlinks=False):
            return own + sum(map(_entry_bytes, os.scandir(entry)))
    except FileNotFoundError:
        return 0
    return own
