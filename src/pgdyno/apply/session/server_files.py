"""The files of a server's data directory, if this process can access them.

Only ``postgresql.auto.conf`` is ever written: atomically, with the same owner and mode. Root accesses it with
the privileges of the server's user, who owns the control file; see ``directory``.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.apply.session.query import AUTO_CONF, Connection, run
from pgdyno.apply.session.target import this_machine
from pgdyno.base.errors import DataDirectoryError, PgdynoError, StorageError
from pgdyno.host.files.directory import Directory, failure, opened_directory
from pgdyno.model.plans.journal import Target
from pgdyno.postgres.checked_results import checked_results

_TEMPORARY = "postgresql.auto.conf.pgdyno"
_IDENTIFIER_BYTES = 8  # the first field of ControlFileData
_START_TOLERANCE_S = 60.0  # between the start times in postmaster.pid and in the server
_MOST_DIGITS = 7  # of a process id: at most 2^22 on Linux, proc_sys_kernel(5), pid_max


@dataclass(frozen=True)
class ServerFiles:
    """A data directory with accessible files.

    Each method opens it again. Raises: DataDirectoryError if it is not a data directory, or belongs to root.
    """

    path: Path

    def read_auto_conf(self) -> bytes:
        """Return the bytes of postgresql.auto.conf; empty if there is no such file.

        Raises: StorageError if it cannot be read, is not a regular file, is too large, or belongs to another
        user.
        """
        with self._opened() as (directory, _):
            return self._auto_conf(directory)

    def replace_auto_conf(self, content: bytes, *, expected: bytes) -> bool:
        """Replace postgresql.auto.conf atomically, so that a crash leaves the old or the new one.

        Returns: False, without replacing it, if the file no longer is ``expected`` when the new one is ready.
        ALTER SYSTEM uses a lock inside the server that no other program can take: what it writes in the
        microseconds between that check and the rename is lost.
        Raises: StorageError if it cannot be written; then the old one is still in place.
        """
        with self._opened() as (directory, _):
            try:
                directory.remove(_TEMPORARY)
                self._write(directory, content)
                if self._auto_conf(directory) != expected:
                    directory.remove(_TEMPORARY)
                    return False
                directory.rename(_TEMPORARY, AUTO_CONF)
            except OSError as error:
                raise self._failure("write", error) from error
        return True

    def owner(self) -> int:
        """Return the uid of the owner of the data directory and its control file."""
        with self._opened() as (directory, _):
            return directory.owner

    def system_identifier(self) -> str:
        """Return the system identifier."""
        with self._opened() as (_, identifier):
            return identifier

    def has_postmaster(self) -> bool:
        """Whether the process in postmaster.pid exists: if so, the server is not simply down."""
        with self._opened() as (directory, _):
            pid = next(iter(_postmaster_lines(directory)), "")
        if not pid.isdecimal() or len(pid) > _MOST_DIGITS or int(pid) == 0:
            return False
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True  # it exists, and belongs to another user
        return True

    def is_of(self, target: Target) -> bool:
        """Whether these are the files of a receipt's server, as far as can be checked by files.

        A standby has its primary's system identifier and may be on the same machine: if the path reported by
        the server is a different data directory here, these are not its files.
        """
        named = None if target.data_directory is None else Path(target.data_directory)
        try:
            with self._opened() as (directory, identifier):
                is_named = named is None or not _is_another(named, directory)
                is_cluster = identifier == target.identity
        except (DataDirectoryError, OSError):
            return False
        return is_named and is_cluster and target.machine in (None, this_machine())

    def patroni_file(self) -> str | None:
        """Return the name of a file that only Patroni creates in a data directory; None if there is none."""
        names = ("patroni.dynamic.json", "postgresql.base.conf")
        with self._opened() as (directory, _):
            return next((name for name in names if directory.has(name)), None)

    def is_running_as(self, identifier: str, port: str, started: float) -> bool:
        """Whether a server with this system identifier, port and start time (Unix, seconds) runs here."""
        with self._opened() as (directory, found):
            lines = _postmaster_lines(directory)
            if len(lines) < 4 or not lines[2].strip().isdecimal():
                return False
            is_same = (found, lines[3].strip()) == (identifier, port)
        return is_same and abs(float(lines[2]) - started) < _START_TOLERANCE_S

    @contextmanager
    def _opened(self) -> Iterator[tuple[Directory, str]]:
        """Provide the open directory and its system identifier."""
        try:
            with opened_directory(self.path) as directory:
                yield directory, self._identifier(directory)
        except OSError as error:
            raise failure(
                DataDirectoryError, f'could not read data directory "{self.path}"', error
            ) from error

    def _identifier(self, directory: Directory) -> str:
        if directory.owner == 0:
            raise DataDirectoryError(
                f'data directory "{self.path}" belongs to root',
                detail="PostgreSQL does not run as root, and rejects a directory of another user",
                hint="name the server's actual data directory, which belongs to the server's user",
            )
        try:
            with directory.inner("global") as inner:
                head = inner.read_start("pg_control", _IDENTIFIER_BYTES)
        except OSError as error:
            raise failure(
                DataDirectoryError, f'could not read the control file of data directory "{self.path}"', error
            ) from error
        return str(int.from_bytes(head, sys.byteorder))

    def _auto_conf(self, directory: Directory) -> bytes:
        try:
            return directory.read(AUTO_CONF)[0]
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._failure("read", error) from error

    def _write(self, directory: Directory, content: bytes) -> None:
        like = directory.status(AUTO_CONF)
        owner = (like.st_uid, like.st_gid) if os.geteuid() == 0 else None
        directory.create(_TEMPORARY, content, stat.S_IMODE(like.st_mode), owner)

    def _failure(self, verb: str, error: OSError) -> PgdynoError:
        return failure(StorageError, f"could not {verb} {self.path / AUTO_CONF}", error)


def _postmaster_lines(directory: Directory) -> list[str]:
    """Return the lines of postmaster.pid; empty if the server is down. Raises: OSError."""
    try:
        return directory.read("postmaster.pid")[0].decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _is_another(path: Path, directory: Directory) -> bool:
    """Whether a path is a data directory other than this one. Raises: OSError."""
    try:
        with opened_directory(path) as other:
            with other.inner("global") as inner:
                inner.status("pg_control")
            return not os.path.samestat(os.fstat(other.descriptor), os.fstat(directory.descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


@checked_results()
def files_of(path: Path, connection: Connection) -> ServerFiles | None:
    """Return the data directory ``path`` if it is accessible and this running server's, else None.

    A copy of a cluster has the same system identifier, so port and start time must match as well.
    """
    files = ServerFiles(path)
    try:
        files.read_auto_conf()
    except (StorageError, DataDirectoryError):
        return None
    row = run(
        connection,
        "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system())::pg_catalog.text,"
        " pg_catalog.current_setting('port'),"
        " pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())::pg_catalog.float8",
    )[0]
    try:
        return files if files.is_running_as(*row) else None
    except (StorageError, DataDirectoryError):
        return None
