"""Writes what chooses the programs that run a server: Debian's pg_ctl.conf, or a symbolic link.

What is asked for is in force when the restarted server itself says that it runs from there. Which programs
ran before is part of what is found: an undo is at its end when those run again.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.journal.durable import replace_file, sync_directory
from pgdyno.journal.query import Connect, run
from pgdyno.model import pg_ctl_conf
from pgdyno.model.errors import OwnershipError, PgdynoError, PrivilegeError, ServerError, StorageError
from pgdyno.model.plan import PG_CTL_OPTIONS, PROGRAM_LINK
from pgdyno.model.ports import Found

_RUNNING = "setting"  # in Found.state: what outcomes show as the value before


@dataclass(frozen=True)
class PgCtlOptionsWriter:
    """Reads, writes and restores the options in a pg_ctl.conf; a key is its path, a value the options.

    ``connect`` reaches the server that it is about; None: it is down.
    """

    connect: Connect | None
    kind: str = PG_CTL_OPTIONS

    def read(self, key: str) -> Found:
        """Return the options, and where the programs lie that run the server now."""
        return Found(self.value(key), _running(self.connect))

    def check(self, key: str) -> None:
        """Refuse a file that does not say it in one line, or cannot be replaced. Changes nothing.

        Raises: OwnershipError, PrivilegeError.
        """
        path = Path(key)
        if path.is_symlink() or not path.is_file() or self.value(key) is None:
            raise OwnershipError(
                f"{key} has no line {pg_ctl_conf.NAME} = '…' of its own",
                detail="one that pg_createcluster has made does, and no other one is changed",
            )
        _require_writable(path)

    def write(self, key: str, value: str) -> None:
        """Replace the options. Raises: StorageError, PrivilegeError."""
        path = Path(key)
        try:
            status, text = path.stat(), path.read_text(errors="surrogateescape")
            content = pg_ctl_conf.with_options(text, value).encode(errors="surrogateescape")
            if content != text.encode(errors="surrogateescape"):
                replace_file(path, content, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))
        except OSError as error:
            raise _not_written(path, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Put the former options back; what else stands in the file is left as it is."""
        self.write(key, found.value or "")

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return where the programs lie that run the server now; None: it is down."""
        return None if self.connect is None else running_programs(self.connect)

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
            return pg_ctl_conf.options_in(Path(key).read_text(errors="surrogateescape"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PrivilegeError(f"could not read {key}", detail=error.strerror) from error


@dataclass(frozen=True)
class ProgramLinkWriter:
    """Reads, writes and restores a symbolic link to a prefix; a key is its path, a value what it leads to.

    ``connect`` reaches the server that is started through it; None: it is down.
    """

    connect: Connect | None
    kind: str = PROGRAM_LINK

    def read(self, key: str) -> Found:
        """Return where the link leads, and where the programs lie that run the server now."""
        return Found(self.value(key), _running(self.connect))

    def check(self, key: str) -> None:
        """Refuse what is no link, and a link that cannot be replaced. Changes nothing.

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
        path = Path(key)
        if self.value(key) == value:
            return
        beside = path.with_name(f"{path.name}.new")
        try:
            status = path.lstat()
            with suppress(FileNotFoundError):
                beside.unlink()
            beside.symlink_to(value)
            if os.geteuid() == 0:
                os.lchown(beside, status.st_uid, status.st_gid)
            beside.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            raise _not_written(path, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Let the link lead where it led."""
        if found.value is not None:
            self.write(key, found.value)

    def verify(self, key: str) -> str | None:  # noqa: ARG002 — the port's signature
        """Return where the programs lie that run the server now; None: it is down."""
        return None if self.connect is None else running_programs(self.connect)

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's signature
        """Whether two values are written alike."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the programs that run are those that the link leads to."""
        return str((Path(key).parent / wanted / "bin").resolve()) == effective

    def value(self, key: str) -> str | None:
        """Return where the link leads; None if there is none."""
        try:
            return str(Path(key).readlink())
        except OSError:
            return None


ProgramWriter = PgCtlOptionsWriter | ProgramLinkWriter


def program_writers(connect: Connect | None) -> dict[str, ProgramWriter]:
    """Return the writers of what chooses a server's programs, by kind; None: the server is down."""
    return {PG_CTL_OPTIONS: PgCtlOptionsWriter(connect), PROGRAM_LINK: ProgramLinkWriter(connect)}


def are_former(found: Found, running: str) -> bool:
    """Whether the programs that run are those that ran when this was found."""
    return found.state[_RUNNING] == running


def running_programs(connect: Connect) -> str:
    """Return the directory whose ``postgres`` runs the server, as it says itself, links resolved.

    Raises: PrivilegeError if the role may not see it; ConnectionFailedError.
    """
    with connect() as connection:
        rows = run(connection, "SELECT setting FROM pg_catalog.pg_config WHERE name = 'BINDIR'")
    if not rows:
        raise ServerError("the server does not say where its programs lie", detail="pg_config has no BINDIR")
    return str(rows[0][0])


def _running(connect: Connect | None) -> dict[str, str]:
    return {} if connect is None else {_RUNNING: running_programs(connect)}


def _require_writable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PrivilegeError(
            f"cannot replace {path}",
            detail=f"{path.parent} is closed to this user, or read-only",
            hint="run pgdyno as root",
        )


def _not_written(path: Path, error: OSError) -> PgdynoError:
    kind = PrivilegeError if isinstance(error, PermissionError) else StorageError
    return kind(f"could not write {path}", detail=error.strerror)
