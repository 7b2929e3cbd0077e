"""Moves one data directory between two builds, both ways, and looks whether either finds it as it was left.

It holds what PostgreSQL's own tests leave behind: objects of nearly every kind there is.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from itertools import zip_longest
from typing import LiteralString

from pgdyno.model.errors import InstallationError
from pgdyno.server.instance import Instance

_LIMIT_S = 600.0  # arbitrary; each takes seconds
_AMCHECK = "SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'"
_WRITTEN: tuple[LiteralString, ...] = (
    "CREATE TABLE IF NOT EXISTS moved (id bigint PRIMARY KEY, x float8, note text)",
    "CREATE INDEX IF NOT EXISTS moved_sum ON moved ((sin(x) * x + id))",
    """
    INSERT INTO moved SELECT i, i / 7.0, repeat(md5(i::text), 1 + (i % 97)::int)
    FROM (SELECT coalesce(max(id), 0) AS last FROM moved) AS known, generate_series(last + 1, last + 5000) i
    """,
    "UPDATE moved SET x = x * 1.1 WHERE id % 3 = 0",
    "DELETE FROM moved WHERE id % 11 = 0",
    "VACUUM (ANALYZE) moved",
)


def require_same_data(first: Instance, second: Instance) -> None:
    """Let the servers, both of one data directory and stopped, read and write it in turns.

    Raises: InstallationError for dumps that differ, or what pg_amcheck finds; errors of servers.
    """
    left = _write_and_dump(first)
    for server in (second, first):
        with server.running():
            _require_equal(left, _dump(server), server)
            _check(server)
        left = _write_and_dump(server)


def _write_and_dump(server: Instance) -> str:
    with server.running():
        with closing(server.connect()) as connection:
            for statement in _WRITTEN:
                connection.execute(statement)
        return _dump(server)


def _dump(server: Instance) -> str:
    """Return all of a server's databases as SQL, by its own pg_dumpall."""
    said = _run(server, "pg_dumpall", "--no-sync")
    # A key of its own for every dump keeps what restores it from taking data for commands.
    lines = (line for line in said.splitlines() if not line.startswith(("\\restrict ", "\\unrestrict ")))
    return "\n".join(lines)


def _check(server: Instance) -> None:
    """Let pg_amcheck read every table and index, where the build has what it takes."""
    with closing(server.connect()) as connection:
        if connection.execute(_AMCHECK).fetchone() is None:
            return
    _run(server, "pg_amcheck", "--all", "--install-missing", "--heapallindexed", "--rootdescend")


def _run(server: Instance, program: str, *options: str) -> str:
    place = (f"--host={server.host}", f"--port={server.port}", f"--username={server.user}")
    done = subprocess.run(
        server.account.command([server.installation.program(program), *place, *options]),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise InstallationError(
            f'"{program}" of {server.installation.title} failed with status {done.returncode}',
            detail="\n         ".join((done.stdout + done.stderr).splitlines()[-12:]),
            hint="the build was not installed",
        )
    return done.stdout


def _require_equal(expected: str, found: str, server: Instance) -> None:
    for line, other in zip_longest(expected.splitlines(), found.splitlines(), fillvalue="(nothing)"):
        if line != other:
            raise InstallationError(
                f"{server.installation.title} reads something else than another build has written",
                detail=f"in a dump of all databases:\n         written: {line}\n         read:    {other}",
                hint="the build was not installed",
            )
