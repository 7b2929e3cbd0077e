"""A cell as its owner describes it in hosts.toml: one server's host, and hosts that load it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MOST_CHATTER = 200
"""Lines that a login may say before the program does: ``.bashrc`` and the like."""
IS_CARRIED = "PGDYNO_CARRIED"
"""The variable by which a command knows that it was sent here, and is not to be sent on."""
_CELL, _BY_HAND = "PGDYNO_TYPED_CELL", "PGDYNO_TYPED_HOST"


@dataclass(frozen=True)
class TypedAt:
    """``cell`` is the file behind ``--cell`` there; ``by_hand`` is pgdyno on the server's host, by ssh."""

    cell: str
    by_hand: str

    def variables(self) -> dict[str, str]:
        """Return the environment of the carried command."""
        return {IS_CARRIED: "1", _CELL: self.cell, _BY_HAND: self.by_hand}


class HostRole(StrEnum):
    """A host's part in the cell."""

    SERVER = "server"
    LOAD = "load"


@dataclass(frozen=True)
class CellHost:
    """One host. ``destination`` is the name that one would type after ``ssh``.

    ``address`` is where load hosts reach the server; None stands for the one that ssh reaches it by.
    ``postgresql`` is the directory of its programs there; None means that usual places are looked at.
    ``pgdyno`` is that program there; None means the one that a login finds.
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
    """All hosts of a cell, and how they are reached.

    ``ssh_config`` None stands for the user's own. ``probe_port`` is where the server's host listens while the
    network is measured; 0 stands for any that is free. ``file_name`` is where all this stands.
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
    """Read lines until the greeting; return whether it came. The rest is the program's."""
    return any(next_line().strip() == greeting.encode() for _ in range(MOST_CHATTER))


def typed_at(environment: Mapping[str, str]) -> TypedAt | None:
    """Return where the user of this command sits; None if that is here."""
    if IS_CARRIED not in environment or _CELL not in environment or _BY_HAND not in environment:
        return None
    return TypedAt(environment[_CELL], environment[_BY_HAND])
