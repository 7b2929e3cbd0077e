"""What the integration tests of the journal share: servers that can be restarted, plans, and snapshots."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from tests.fix_servers import RealServer, as_unprivileged

from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.restart import command_restarter
from pgdyno.model.plans.plan import Change, Effect, Layer, Plan, PlanLine, Risk, kind_of
from pgdyno.postgres.connection.connection import addresses, connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server

NOWHERE = Path("/nonexistent")

# Which pages a server got depends on the machine's pool, which other tests fill meanwhile.
_SETTINGS = "SELECT * FROM pg_settings WHERE name <> 'huge_pages_status' ORDER BY name"


@dataclass(frozen=True)
class Snapshot:
    """Everything that a revert has to give back, read without any code of pgdyno."""

    settings: list[tuple[Any, ...]]
    file_settings: list[tuple[Any, ...]]
    files: dict[str, tuple[bytes, int, int, int]]  # content, mode, owner, group
    names: list[str]

    def __sub__(self, other: Snapshot) -> list[object]:
        """Return what is here and not there, so that a failing test shows nothing else."""
        pairs = (
            (self.settings, other.settings),
            (self.file_settings, other.file_settings),
            (self.files.items(), other.files.items()),
            (self.names, other.names),
        )
        return [one for mine, theirs in pairs for one in mine if one not in theirs]


def snapshot(server: RealServer) -> Snapshot:
    """Read pg_settings, pg_file_settings, and the configuration files of a server."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        file_settings = connection.execute("SELECT * FROM pg_file_settings ORDER BY seqno").fetchall()
        settings = connection.execute(_SETTINGS).fetchall()
    return Snapshot(
        settings,
        file_settings,
        files={path.name: _described(path) for path in server.data_directory.glob("*.conf*")},
        names=sorted(path.name for path in server.data_directory.iterdir()),
    )


def _described(path: Path) -> tuple[bytes, int, int, int]:
    status = path.stat()
    return path.read_bytes(), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid


def auto_conf(server: RealServer) -> Path:
    """Return the file that ALTER SYSTEM writes."""
    return server.data_directory / "postgresql.auto.conf"


def write_auto_conf(server: RealServer, text: str) -> None:
    """Write the file by hand, keeping owner and mode, and restart."""
    with auto_conf(server).open("w", encoding="utf-8") as file:
        file.write(text)
    access_to(server, NOWHERE).restarter.restart()  # type: ignore[union-attr]


def access_to(
    server: RealServer, journal_directory: Path, *, has_files: bool = True, user: str = "postgres"
) -> ServerAccess:
    """Return an access that may restart the server with pg_ctl; without files they are looked for nowhere."""

    def open_connection() -> Connection:
        return connect_to_change(server.dsn_for(user))

    return ServerAccess(
        open_connection,
        journal_directory,
        inspect_server,
        data_directory=None if has_files else NOWHERE,
        restarter=command_restarter(pg_ctl_restart(server), open_connection),
        addresses=addresses(server.dsn_for(user)),
        host_writers=host_writers(),
    )


def pg_ctl_restart(server: RealServer) -> tuple[str, ...]:
    """Return the command that restarts a server, or starts it if it is down."""
    return (
        *as_unprivileged(), str(server.bin_directory / "pg_ctl"), "restart", "-D", str(server.data_directory),
        "-m", "fast", "-w", "-t", "120", "-l", str(server.directory / "pg_ctl.log"),
    )  # fmt: skip


@contextmanager
def under_pg_ctl(server: RealServer) -> Iterator[RealServer]:
    """Let pg_ctl instead of the fixture run the server, so that it outlives whoever restarts it."""
    server.stop()
    access = access_to(server, NOWHERE)
    assert access.restarter is not None
    access.restarter.restart()
    try:
        yield server
    finally:
        if (server.data_directory / "postmaster.pid").exists():
            server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "immediate")


def plan_of(**settings: str) -> Plan:
    """Return a plan that sets settings; what takes a restart is found out by apply itself."""
    return Plan(
        lines=tuple(
            PlanLine(
                Change("test", "setting", name, None, value, Effect.RELOAD),
                Layer.APPLICATION,
                reason="a test",
                evidence="none",
                risk=Risk.SAFE,
                undo="pgdyno revert",
            )
            for name, value in settings.items()
        ),
        skipped=(),
        findings=(),
        memory_proof=None,
    )


def with_files(plan: Plan, files: Mapping[str, str]) -> Plan:
    """Return a plan that writes files of the kernel as well."""
    lines = tuple(
        PlanLine(
            Change("test", kind_of(path), path, None, value, Effect.IMMEDIATE),
            Layer.SYSTEM,
            reason="a test",
            evidence="none",
            risk=Risk.SHARED,
            undo="pgdyno revert",
        )
        for path, value in files.items()
    )
    return replace(plan, lines=(*plan.lines, *lines))


def with_programs(plan: Plan, programs: Sequence[tuple[str, str, str]]) -> Plan:
    """Return a plan that changes what chooses a server's programs as well: kind, key and value of each."""
    lines = tuple(
        PlanLine(
            Change("test", kind, key, None, value, Effect.RESTART),
            Layer.COMPILER,
            reason="a test",
            evidence="none",
            risk=Risk.RESTART,
            undo="pgdyno revert",
        )
        for kind, key, value in programs
    )
    return replace(plan, lines=(*plan.lines, *lines))
