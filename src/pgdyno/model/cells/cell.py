"""A cell as described in hosts.toml: one server's host, and hosts that load it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MOST_CHATTER = 200
"""Most lines that a login may print before the program's output: by ``.bashrc`` and the like."""
IS_CARRIED = "PGDYNO_CARRIED"
"""Environment variable set for a command that was forwarded to this host; it must not forward itself."""
_CELL, _BY_HAND = "PGDYNO_TYPED_CELL", "PGDYNO_TYPED_HOST"


@dataclass(frozen=True)
class TypedAt:
    """The place where the user typed a command that was forwarded to the server's host.

    ``cell`` is the value of ``--cell`` there; ``by_hand`` is the command that runs pgdyno on the server's
    host by ssh.
    """

    cell: str
    by_hand: str

    def variables(self) -> dict[str, str]:
        """Return the environment of the forwarded command."""
        return {IS_CARRIED: "1", _CELL: self.cell, _BY_HAND: self.by_hand}


class HostRole(StrEnum):
    """The role of a host in the cell."""

    SERVER = "server"
    LOAD = "load"


@dataclass(frozen=True)
class CellHost:
    """One host. ``destination`` is the argument of ``ssh``.

    ``address`` is the server's address for load hosts; None: the address that ssh uses.
    ``postgresql`` is the directory of its programs there; None: the usual places are searched.
    ``pgdyno`` is the path of pgdyno there; None: the one in the login shell's PATH.
    """

    name: str
    role: HostRole
    destination: str
    jump: str | None = None
    key: Path | None = None
    address: str | None = None
    postgresql: str | None = None
    pgdyno: str | None = None
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class CellHosts:
    """All hosts of a cell, and how to reach them.

    ``ssh_config`` None: the user's own. ``probe_port`` is the port on which the server's host listens while
    the network is measured; 0: any free port. ``file_name`` is the file with this description.
    """

    server: CellHost
    loads: tuple[CellHost, ...]
    ssh_config: Path | None = None
    probe_port: int = 0
    file_name: str = "hosts.toml"

    @property
    def all(self) -> tuple[CellHost, ...]:
        """The server's host, then the load hosts."""
        return (self.server, *self.loads)


def await_greeting(next_line: Callable[[], bytes], greeting: str) -> bool:
    """Read lines until the greeting; return whether it came. Later lines belong to the program."""
    return any(next_line().strip() == greeting.encode() for _ in range(MOST_CHATTER))


def typed_at(environment: Mapping[str, str]) -> TypedAt | None:
    """Return where the user typed this command; None if it was on this host."""
    if IS_CARRIED not in environment or _CELL not in environment or _BY_HAND not in environment:
        return None
    return TypedAt(environment[_CELL], environment[_BY_HAND])
