"""Access to a server for changes, as passed by the use cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pgdyno.apply.session.query import Connect, Connection
from pgdyno.apply.session.restart import CommandRestarter
from pgdyno.apply.session.server_files import ServerFiles, files_of
from pgdyno.apply.session.session import Session
from pgdyno.base.ports import HostWriter
from pgdyno.postgres.server import Server

Steps: TypeAlias = Callable[[str], None]
"""Is called with the name of every step right after it, so that a test can stop the process there."""


ProgramsCheck: TypeAlias = Callable[[Session, ServerFiles | None, Path], tuple[str, ...]]
"""Tests whether the programs in a directory can run a server; returns sentences on the changes.

Raises: RefusedError with every reason why they cannot.
"""


Inspect: TypeAlias = Callable[[Any], Server]
"""Reads everything that the role may see of a server, over a connection."""


def no_steps(_step: str) -> None:
    """Ignore a step."""


@dataclass(frozen=True)
class ServerAccess:
    """One server, and the journal of its changes.

    ``inspect`` reads the server's description. ``connect_to_look`` opens a connection for reading only, which
    may go through a pooler; None: use ``connect``.
    ``data_directory``: path of the server's files for this process, if it differs from the path reported by
    the server, or if the server is down. ``restarter`` None: no restart command is known.
    ``addresses``: the addresses used by ``connect``, formatted like ``Target.address``, to identify a server
    that is down. ``revert_command``: the user's command to undo changes of this server.
    ``host_writers``: writers for the server's machine, by kind of change; empty if it is another machine.
    ``host_root``: root directory of that machine's files, ``/`` except in tests. ``programs_check`` is called
    before other programs run the server; None: the caller has already checked.
    """

    connect: Connect
    journal_directory: Path
    inspect: Inspect
    connect_to_look: Connect | None = None
    data_directory: Path | None = None
    restarter: CommandRestarter | None = None
    addresses: tuple[str, ...] = ()
    revert_command: str = "pgdyno revert"
    host_writers: Mapping[str, HostWriter] = field(default_factory=dict)
    host_root: Path = Path("/")
    programs_check: ProgramsCheck | None = None

    def look(self) -> Connection:
        """Open a connection for reading only. Raises: ConnectionFailedError."""
        return (self.connect_to_look or self.connect)()

    @property
    def restart_command(self) -> tuple[str, ...]:
        """The words of the user's restart command; empty if none is known."""
        return () if self.restarter is None else self.restarter.command

    def files(self, session: Session) -> ServerFiles | None:
        """Return the running server's files; None unless they are accessible and proven to be its own."""
        named = session.target.data_directory
        path = self.data_directory or (Path(named) if named else None)
        return files_of(path, session.connection) if path is not None else None

    def restarter_of(self, session: Session) -> CommandRestarter | None:
        """Return a restarter for the session's server, which waits until it is up again; None: unknown."""
        return None if self.restarter is None else replace(self.restarter, connect=session.connect)
