"""The files of a server's data directory, where this process reaches them.

Only ``postgresql.auto.conf`` is ever written, atomically, with the owner and mode it had. Root works there
with the rights of the server's user, who is known by the control file; see ``directory``.
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
from pgdyno.postgres.answers import answers_of_postgresql

_TEMPORARY = "postgresql.auto.conf.pgdyno"
_IDENTIFIER_BYTES = 8  # at the beginning of ControlFileData
_START_TOLERANCE_S = 60.0  # between the pid file and the moment that the server calls its start
_MOST_DIGITS = 7  # of a process id: at most 2^22 on Linux, proc_sys_kernel(5), pid_max


@dataclass(frozen=True)
class ServerFiles:
    """A data directory whose files can be read and replaced.

    Each method opens it anew. Raises: DataDirectoryError if it is none, or is not that of a server's user.
    """

    path: Path

    def read_auto_conf(self) -> bytes:
        """Return the bytes of postgresql.auto.conf; none if there is no such file.

        Raises: StorageError if it cannot be read, is no plain file, too large, or another user's.
        """
        with self._opened() as (directory, _):
            return self._auto_conf(directory)

    def replace_auto_conf(self, content: bytes, *, expected: bytes) -> bool:
        """Replace postgresql.auto.conf in one step, so that a crash leaves the old or the new one.

        Returns: False, with nothing replaced, if the file is not ``expected`` any more when the new one is
        ready. A running server's ALTER SYSTEM takes a lock for this that no other program can take: what it
        writes between that last look and the rename, some microseconds, is lost.
        Raises: StorageError if it cannot be written; then the old one is still there.
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

    def remove_leftovers(self) -> None:
        """Remove the file that a killed pgdyno may have left next to postgresql.auto.conf."""
        with self._opened() as (directory, _):
            try:
                directory.remove(_TEMPORARY)
            except OSError as error:
                raise self._failure("write", error) from error

    def owner(self) -> int:
        """Return the number of the user whom the data directory and its control file belong to."""
        with self._opened() as (directory, _):
            return directory.owner

    def system_identifier(self) -> str:
        """Return the system identifier."""
        with self._opened() as (_, identifier):
            return identifier

    def has_postmaster(self) -> bool:
        """Whether the process that postmaster.pid names exists: then the server is not simply down."""
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
        """Whether these are the files of the server that a receipt is about, as far as files can tell.

        A standby has its primary's system identifier and may be on the same machine: if the path that the
        server named leads to another data directory here, these are not its files.
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
        """Return the name of a file that only Patroni leaves in a data directory; None if there is none."""
        names = ("patroni.dynamic.json", "postgresql.base.conf")
        with self._opened() as (directory, _):
            return next((name for name in names if directory.has(name)), None)

    def is_running_as(self, identifier: str, port: str, started: float) -> bool:
        """Whether a server of this identifier runs here, on this port, since this time (seconds, Unix)."""
        with self._opened() as (directory, found):
            lines = _postmaster_lines(directory)
            if len(lines) < 4 or not lines[2].strip().isdecimal():
                return False
            is_same = (found, lines[3].strip()) == (identifier, port)
        return is_same and abs(float(lines[2]) - started) < _START_TOLERANCE_S

    @contextmanager
    def _opened(self) -> Iterator[tuple[Directory, str]]:
        """Provide the directory and the system identifier in it, which proves whose a directory it is."""
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
                detail="PostgreSQL does not run as root, and takes no directory of another user",
                hint="name the directory that the server runs on, which belongs to the server's user",
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
    """Return the lines of postmaster.pid; none if the server is down. Raises: OSError."""
    try:
        return directory.read("postmaster.pid")[0].decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _is_another(path: Path, directory: Directory) -> bool:
    """Whether a data directory lies at a path, and is not this one. Raises: OSError."""
    try:
        with opened_directory(path) as other:
            with other.inner("global") as inner:
                inner.status("pg_control")
            return not os.path.samestat(os.fstat(other.descriptor), os.fstat(directory.descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


@answers_of_postgresql()
def files_of(path: Path, connection: Connection) -> ServerFiles | None:
    """Return the data directory ``path`` if it is this running server's and its files can be reached.

    A copy of a cluster has the same system identifier: port and start time must fit as well.
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
