"""Access to a server to be changed, as the use cases pass it to the journal."""

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
"""Is told the name of every step right after it was taken, so that a test can stop the process there."""


ProgramsCheck: TypeAlias = Callable[[Session, ServerFiles | None, Path], tuple[str, ...]]
"""Tries whether the programs in a directory can run a server, and says what would be otherwise with them.

Raises: RefusedError with all that keeps them from it.
"""


Inspect: TypeAlias = Callable[[Any], Server]
"""Reads all that the role may see of a server, from a connection of the kind that is opened to it."""


def no_steps(_step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class ServerAccess:
    """One server, and the journal that its receipts go to.

    ``inspect`` reads what the server is, from a connection to it. ``connect_to_look`` opens one that may go
    through a pooler, to look at the server alone; None: as ``connect``.
    ``data_directory`` is where this process finds the server's files, if that is not the path that the
    server itself names, or if the server is down. ``restarter`` None means that nobody said how to restart.
    ``addresses`` are where ``connect`` looks, written like ``Target.address``: a server that is down is
    recognised by them. ``revert_command`` is what a user types to undo changes of this server.
    ``host_writers`` change the machine that it runs on, by kind of change; none if that is another one.
    ``host_root`` is where its files are, which is ``/`` but in tests. ``programs_check`` is asked
    before other programs run the server; None: whoever changes what runs it has asked already.
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
        """Open a connection for looking. Raises: ConnectionFailedError."""
        return (self.connect_to_look or self.connect)()

    @property
    def restart_command(self) -> tuple[str, ...]:
        """The words of the user's command that restarts the server; none if nobody said how."""
        return () if self.restarter is None else self.restarter.command

    def files(self, session: Session) -> ServerFiles | None:
        """Return the running server's files if they are within reach and proven to be its own."""
        named = session.target.data_directory
        path = self.data_directory or (Path(named) if named else None)
        return files_of(path, session.connection) if path is not None else None

    def restarter_of(self, session: Session) -> CommandRestarter | None:
        """Return a restarter for the session's server, which waits for its return."""
        return None if self.restarter is None else replace(self.restarter, connect=session.connect)
