"""Select the programs that run a server, in Debian's pg_ctl.conf or by a symbolic link.

A change is in force when the restarted server itself reports the new directory. The original state includes
the programs that ran before: an undo is complete when those run again.
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
from pgdyno.host.files.directory import (
    UntrustedError,
    failure,
    opened_directory,
    replace_file,
    replace_link,
    temporary_name,
)
from pgdyno.model.plans.journal import as_bytes, as_text
from pgdyno.model.plans.plan import PG_CTL_OPTIONS, PROGRAM_LINK
from pgdyno.postgres import pg_ctl_conf

_PROGRAMS: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config WHERE name OPERATOR(pg_catalog.=) 'BINDIR'"
)
_RUNNING = "setting"  # key of Found.state, shown in outcomes as the value before


@dataclass(frozen=True)
class _ProgramWriter:
    """Common part of both program writers. ``connect`` connects to the server; None: it is down."""

    connect: Connect | None

    def read(self, key: str) -> Found:
        """Return the selection, and the directory of the server's running programs."""
        running = self.verify(key)
        return Found(self.value(key), {} if running is None else {_RUNNING: running})

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return the directory of the server's running programs; None: it is down."""
        return None if self.connect is None else running_programs(self.connect)

    def value(self, key: str) -> str | None:
        """Return the selection; None if there is none of this kind."""
        raise NotImplementedError


@dataclass(frozen=True)
class PgCtlOptionsWriter(_ProgramWriter):
    """Reads, writes and restores the options in a pg_ctl.conf; a key is its path, a value the options."""

    kind: str = PG_CTL_OPTIONS

    def check(self, key: str) -> None:
        """Refuse a file without a separate line for the options, or that cannot be replaced. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        if Path(key).is_symlink() or self.value(key) is None:
            raise OwnershipError(
                f"{key} has no separate line {pg_ctl_conf.NAME} = '…'",
                detail="files made by pg_createcluster have this line; pgdyno does not change other files",
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
        """Whether the server runs the programs named in the options."""
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
    """Reads, writes and restores a link to a prefix; a key is the link's path, a value its target."""

    kind: str = PROGRAM_LINK

    def check(self, key: str) -> None:
        """Refuse a file that is not a link, and a link that cannot be replaced. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        if self.value(key) is None:
            raise OwnershipError(
                f"{key} is not a symbolic link",
                hint="name the link that the server is started through with --link",
            )
        _require_writable(Path(key))

    def write(self, key: str, value: str) -> None:
        """Replace the link atomically. Raises: StorageError, PrivilegeError."""
        if self.value(key) == value:
            return
        try:
            with opened_directory(Path(key).parent) as directory:
                replace_link(directory, Path(key).name, value)
        except OSError as error:
            raise _not_written(Path(key), error) from error

    def restore(self, key: str, found: Found) -> None:
        """Restore the link's target. Raises: OwnershipError if it now leads to anything but PostgreSQL."""
        present = Path(key).parent / (self.value(key) or "")
        if present.exists() and not (present / "bin/postgres").exists():
            raise OwnershipError(
                f"{key} is not restored: it does not lead to PostgreSQL",
                detail=f"it leads to {present}, which contains no bin/postgres",
                hint="someone else has changed it since; restore the link yourself if appropriate",
            )
        if found.value is not None:
            self.write(key, found.value)
        _remove_leftover(Path(key))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two values are written alike."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the server runs the programs that the link leads to."""
        return str((Path(key).parent / wanted / "bin").resolve()) == effective

    def value(self, key: str) -> str | None:
        """Return the link's target; None if there is no link. Raises: PrivilegeError."""
        try:
            with opened_directory(Path(key).parent) as directory:
                return directory.link_target(Path(key).name)
        except UntrustedError as error:
            raise failure(PrivilegeError, f"could not read {key}", error) from error
        except OSError:
            return None


ProgramWriter = PgCtlOptionsWriter | ProgramLinkWriter


def program_writers(connect: Connect | None) -> dict[str, ProgramWriter]:
    """Return the writers for the selection of a server's programs, by kind. ``connect`` None: it is down."""
    return {PG_CTL_OPTIONS: PgCtlOptionsWriter(connect), PROGRAM_LINK: ProgramLinkWriter(connect)}


def former_programs(found: Found) -> Path:
    """Return the directory of the programs that ran in the original state."""
    return Path(found.state[_RUNNING])


def are_former(found: Found, running: str) -> bool:
    """Whether the running programs are those of the original state."""
    return found.state[_RUNNING] == running


def running_programs(connect: Connect) -> str:
    """Return the directory of the server's programs, as reported by the server, with links resolved.

    Raises: PrivilegeError if the role may not see it; ConnectionFailedError; ServerError without a report.
    """
    with connect() as connection:
        rows = run(connection, _PROGRAMS)
    if not rows:
        raise ServerError("the server does not report its bin directory", detail="pg_config has no BINDIR")
    return str(rows[0][0])


def _remove_leftover(path: Path) -> None:
    try:
        with opened_directory(path.parent) as directory:
            directory.remove(temporary_name(path.name))
    except OSError as error:
        raise _not_written(path, error) from error


def _require_writable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PrivilegeError(
            f"cannot replace {path}",
            detail=f"{path.parent} is not writable for this user",
            hint="run pgdyno as root",
        )


def _not_written(path: Path, error: OSError) -> PgdynoError:
    kind = PrivilegeError if isinstance(error, PermissionError) else StorageError
    return failure(kind, f"could not write {path}", error)
