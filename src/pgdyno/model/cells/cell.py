"""A cell as its owner describes it in hosts.toml: one server's host, and hosts that load it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


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
