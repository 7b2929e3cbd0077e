"""Write the choice of the programs that run a server.

Debian's pg_ctl.conf, or a symbolic link.

What is asked for is in force when the restarted server itself says that it runs from there. Which programs
ran before is part of what is found: an undo is at its end when those run again.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from pgdyno.apply.session.query import Connect, run
from pgdyno.base.errors import OwnershipError, PgdynoError, PrivilegeError, ServerError, StorageError
from pgdyno.base.ports import Found
from pgdyno.host.files.directory import UntrustedError, failure, opened_directory
from pgdyno.host.files.durable import replace_file, replace_link, written_beside
from pgdyno.model.plans.journal import as_bytes, as_text
from pgdyno.model.plans.plan import PG_CTL_OPTIONS, PROGRAM_LINK
from pgdyno.postgres import pg_ctl_conf

_PROGRAMS: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config WHERE name OPERATOR(pg_catalog.=) 'BINDIR'"
)
_RUNNING = "setting"  # in Found.state: what outcomes show as the value before


@dataclass(frozen=True)
class _ProgramWriter:
    """Common part of both program writers.

    ``connect`` reaches the server concerned; None: it is down.
    """

    connect: Connect | None

    def read(self, key: str) -> Found:
        """Return the choice, and where the programs lie that run the server now."""
        running = self.verify(key)
        return Found(self.value(key), {} if running is None else {_RUNNING: running})

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return where the programs lie that run the server now; None: it is down."""
        return None if self.connect is None else running_programs(self.connect)

    def value(self, key: str) -> str | None:
        """Return the choice; None if there is none of this kind."""
        raise NotImplementedError


@dataclass(frozen=True)
class PgCtlOptionsWriter(_ProgramWriter):
    """Reads, writes and restores the options in a pg_ctl.conf; a key is its path, a value the options."""

    kind: str = PG_CTL_OPTIONS

    def check(self, key: str) -> None:
        """Refuse a file that does not say it in one line, or cannot be replaced. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        if Path(key).is_symlink() or self.value(key) is None:
            raise OwnershipError(
                f"{key} has no line {pg_ctl_conf.NAME} = '…' of its own",
                detail="files made by pg_createcluster have it, and pgdyno changes no others",
            )
        _require_writable(Path(key))

    def write(self, key: str, value: str) -> None:
        """Replace the options. Raises: StorageError, PrivilegeError."""
        path = Path(key)
        try:
            with opened_directory(path.parent) as directory:
                content, status = directory.read(path.name)
                changed = as_bytes(pg_ctl_conf.with_options(as_text(content), value))
                if changed != content:
                    owner = (status.st_uid, status.st_gid)
                    replace_file(directory, path.name, changed, stat.S_IMODE(status.st_mode), owner)
        except OSError as error:
            raise _not_written(path, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Restore the previous options; the rest of the file stays unchanged."""
        self.write(key, found.value or "")
        _remove_leftover(Path(key))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two values are the same options in the same order."""
        return one == other if one is None or other is None else one.split() == other.split()

    def meets(self, key: str, wanted: str, effective: str) -> bool:  # noqa: ARG002 — the port's signature
        """Whether the programs that run are those that the options name."""
        program = pg_ctl_conf.program_in(wanted)
        return program is not None and str(program.resolve().parent) == effective

    def value(self, key: str) -> str | None:
        """Return the options; None if there is no such line. Raises: PrivilegeError."""
        try:
            with opened_directory(Path(key).parent) as directory:
                return pg_ctl_conf.options_in(as_text(directory.read(Path(key).name)[0]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise failure(PrivilegeError, f"could not read {key}", error) from error


@dataclass(frozen=True)
class ProgramLinkWriter(_ProgramWriter):
    """Writer that reads, writes and restores a symbolic link to a prefix.

    A key is the link's path, a value its target.
    """

    kind: str = PROGRAM_LINK

    def check(self, key: str) -> None:
        """Refuse a non-link, and a link that cannot be replaced. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        if self.value(key) is None:
            raise OwnershipError(
                f"{key} is not a symbolic link",
                hint="--link takes the one that the server is started through",
            )
        _require_writable(Path(key))

    def write(self, key: str, value: str) -> None:
        """Let the link lead elsewhere, in one step. Raises: StorageError, PrivilegeError."""
        if self.value(key) == value:
            return
        try:
            with opened_directory(Path(key).parent) as directory:
                replace_link(directory, Path(key).name, value)
        except OSError as error:
            raise _not_written(Path(key), error) from error

    def restore(self, key: str, found: Found) -> None:
        """Let the link lead where it led. Raises: OwnershipError for a link to anything but PostgreSQL."""
        present = Path(key).parent / (self.value(key) or "")
        if present.exists() and not (present / "bin/postgres").exists():
            raise OwnershipError(
                f"{key} is not restored: it does not lead to PostgreSQL",
                detail=f"it leads to {present}, where there is no bin/postgres",
                hint="somebody else has changed it since; let it lead there yourself, if that is right",
            )
        if found.value is not None:
            self.write(key, found.value)
        _remove_leftover(Path(key))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two values are written alike."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the programs that run are those that the link leads to."""
        return str((Path(key).parent / wanted / "bin").resolve()) == effective

    def value(self, key: str) -> str | None:
        """Return where the link leads; None if there is none. Raises: PrivilegeError."""
        try:
            with opened_directory(Path(key).parent) as directory:
                return directory.link_target(Path(key).name)
        except UntrustedError as error:
            raise failure(PrivilegeError, f"could not read {key}", error) from error
        except OSError:
            return None


ProgramWriter = PgCtlOptionsWriter | ProgramLinkWriter


def program_writers(connect: Connect | None) -> dict[str, ProgramWriter]:
    """Return the writers for the choice of a server's programs, by kind.

    None: the server is down.
    """
    return {PG_CTL_OPTIONS: PgCtlOptionsWriter(connect), PROGRAM_LINK: ProgramLinkWriter(connect)}


def former_programs(found: Found) -> Path:
    """Return where the programs lie that ran when this was found."""
    return Path(found.state[_RUNNING])


def are_former(found: Found, running: str) -> bool:
    """Whether the programs that run are those that ran when this was found."""
    return found.state[_RUNNING] == running


def running_programs(connect: Connect) -> str:
    """Return the directory whose ``postgres`` runs the server, as it says itself, links resolved.

    Raises: PrivilegeError if the role may not see it; ConnectionFailedError.
    """
    with connect() as connection:
        rows = run(connection, _PROGRAMS)
    if not rows:
        raise ServerError("the server does not say where its programs lie", detail="pg_config has no BINDIR")
    return str(rows[0][0])


def _remove_leftover(path: Path) -> None:
    try:
        with opened_directory(path.parent) as directory:
            directory.remove(written_beside(path.name))
    except OSError as error:
        raise _not_written(path, error) from error


def _require_writable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PrivilegeError(
            f"cannot replace {path}",
            detail=f"{path.parent} is closed to this user, or read-only",
            hint="run pgdyno as root",
        )


def _not_written(path: Path, error: OSError) -> PgdynoError:
    kind = PrivilegeError if isinstance(error, PermissionError) else StorageError
    return failure(kind, f"could not write {path}", error)
