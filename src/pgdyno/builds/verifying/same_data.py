"""Move one data directory between two builds, both ways, and compare its contents.

It holds what PostgreSQL's own tests leave behind: objects of nearly every kind there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import zip_longest
from typing import LiteralString

from pgdyno.base.errors import InstallationError
from pgdyno.postgres.process.instance import Instance

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


def _write_and_dump(server: Instance) -> list[bytes]:
    with server.running():
        with closing(server.connect()) as connection:
            for statement in _WRITTEN:
                connection.execute(statement)
        return _dump(server)


def _dump(server: Instance) -> list[bytes]:
    """Return the lines of all of a server's databases as SQL, by its own pg_dumpall."""
    said = _run(server, "pg_dumpall", "--no-sync")
    # A key of its own for every dump keeps what restores it from taking data for commands.
    return [line for line in said.split(b"\n") if not line.startswith((b"\\restrict ", b"\\unrestrict "))]


def _check(server: Instance) -> None:
    """Let pg_amcheck read every table and index. Plain builds of an older pgdyno have no amcheck."""
    with closing(server.connect()) as connection:
        if connection.execute(_AMCHECK).fetchone() is None:
            return
    _run(server, "pg_amcheck", "--all", "--install-missing", "--heapallindexed", "--rootdescend")


def _run(server: Instance, program: str, *options: str) -> bytes:
    place = (f"--host={server.host}", f"--port={server.port}", f"--username={server.user}")
    done = server.account.run([server.installation.program(program), *place, *options], limit_s=_LIMIT_S)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        raise InstallationError(
            f'"{program}" of {server.installation.title} failed with status {done.returncode}',
            detail="\n         ".join(said[-12:]) or None,
        )
    return done.stdout


def _require_equal(expected: Sequence[bytes], found: Sequence[bytes], server: Instance) -> None:
    for line, other in zip_longest(expected, found, fillvalue=b"(nothing)"):
        if line != other:
            written, read = line.decode(errors="replace"), other.decode(errors="replace")
            raise InstallationError(
                f"{server.installation.title} reads something else than another build has written",
                detail=f"in a dump of all databases:\n         written: {written}\n         read:    {read}",
                hint="keep no data with it; another compiler or a lower level may do better",
            )
