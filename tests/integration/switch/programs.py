"""What runs a server, what chooses it, and whether a switch is undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fix_debian import VERSION, DebianCluster
from tests.fix_servers import RealServer

from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess

PROGRAMS = Path("/usr/lib/postgresql", VERSION)
SHARED = Path("/usr/share/postgresql", VERSION)

Switch = Callable[..., tuple[int, str, str]]
"""Runs a command of pgdyno on a cluster; returns its status, output and errors."""


@dataclass(frozen=True)
class Linked:
    """A server that is started through a link to its prefix, and the command that restarts it so."""

    server: RealServer
    link: Path
    restart: Path


def running(server: DebianCluster | RealServer) -> Path:
    """Return the program of a server's postmaster, by the kernel's account of it."""
    pid = int((server.data_directory / "postmaster.pid").read_text().split()[0])
    return Path(f"/proc/{pid}/exe").readlink()


def pg_ctl_conf(cluster: DebianCluster) -> Path:
    return cluster.configuration_directory / "pg_ctl.conf"


def described(path: Path) -> tuple[bytes, int, int, int]:
    status = path.stat()
    return path.read_bytes(), status.st_mode, status.st_uid, status.st_gid


def address(cluster: DebianCluster) -> str:
    """Return how receipts call the cluster."""
    return f"host={cluster.directory} port={cluster.port}"


def is_as_before(linked: Linked) -> bool:
    """Whether the link is its former self, and the server runs through it."""
    owner = (linked.link.lstat().st_uid, linked.link.lstat().st_gid)
    found = (linked.link.readlink(), running(linked.server), owner)
    return found == (PROGRAMS, PROGRAMS / "bin/postgres", (1, 1))


def is_reverted(access: ServerAccess) -> bool:
    """Revert, and return whether everything is undone and no receipt is open."""
    result = revert(access, RevertRequest(is_all=True, allow_restart=True))
    return result.is_complete and read_journal(access.journal_directory).open == ()
