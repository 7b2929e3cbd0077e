"""The files of a server's data directory, where this process reaches them.

Only ``postgresql.auto.conf`` is ever written, atomically, with the owner and mode it had. A symbolic link
in its place is never followed: root would be writing wherever the directory's owner wants.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.journal.durable import sync_directory
from pgdyno.journal.query import Connection, run
from pgdyno.journal.settings import AUTO_CONF
from pgdyno.journal.target import this_machine
from pgdyno.model.errors import DataDirectoryError, StorageError
from pgdyno.model.journal import Target

_CONTROL_FILE = "global/pg_control"
_TEMPORARY = "postgresql.auto.conf.pgdyno"
_START_TOLERANCE_S = 60.0  # between the pid file and the moment that the server calls its start


@dataclass(frozen=True)
class ServerFiles:
    """A data directory whose files can be read and replaced."""

    path: Path

    def read_auto_conf(self) -> bytes:
        """Return the bytes of postgresql.auto.conf; none if there is no such file.

        Raises: StorageError if it cannot be read or is a symbolic link.
        """
        try:
            file = os.open(self.path / AUTO_CONF, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._failure("read", error) from error
        with os.fdopen(file, "rb") as stream:
            return stream.read()

    def replace_auto_conf(self, content: bytes, *, expected: bytes) -> bool:
        """Replace postgresql.auto.conf in one step, so that a crash leaves the old or the new one.

        Returns: False, with nothing replaced, if the file is not ``expected`` any more when the new one is
        ready. A running server's ALTER SYSTEM takes a lock for this that no other program can take: what it
        writes between that last look and the rename, some microseconds, is lost.
        Raises: StorageError if it cannot be written; then the old one is still there.
        """
        temporary = self.path / _TEMPORARY
        try:
            self.remove_leftovers()
            self._write(temporary, content)
            if self.read_auto_conf() != expected:
                self.remove_leftovers()
                return False
            temporary.replace(self.path / AUTO_CONF)
            sync_directory(self.path)
        except OSError as error:
            raise self._failure("write", error) from error
        return True

    def remove_leftovers(self) -> None:
        """Remove the file that a killed pgdyno may have left beside postgresql.auto.conf."""
        with suppress(FileNotFoundError):
            (self.path / _TEMPORARY).unlink()

    def system_identifier(self) -> str:
        """Return the system identifier: the first eight bytes of pg_control (ControlFileData)."""
        try:
            head = (self.path / _CONTROL_FILE).read_bytes()[:8]
        except OSError as error:
            raise DataDirectoryError(
                f'could not read the control file of data directory "{self.path}"', detail=error.strerror
            ) from error
        return str(int.from_bytes(head, sys.byteorder))

    def has_postmaster(self) -> bool:
        """Whether the process that postmaster.pid names exists: then the server is not simply down."""
        try:
            pid = int((self.path / "postmaster.pid").read_text().split("\n")[0])
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError, ValueError):
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
            is_named = named is None or not (named / _CONTROL_FILE).exists() or named.samefile(self.path)
            is_cluster = self.system_identifier() == target.identity
        except (DataDirectoryError, OSError):
            return False
        return is_named and is_cluster and target.machine in (None, this_machine())

    def patroni_file(self) -> str | None:
        """Return the name of a file that only Patroni leaves in a data directory; None if there is none."""
        names = ("patroni.dynamic.json", "postgresql.base.conf")
        return next((name for name in names if (self.path / name).exists()), None)

    def _write(self, temporary: Path, content: bytes) -> None:
        like = (self.path / AUTO_CONF).lstat()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600)
        with os.fdopen(file, "wb") as stream:
            if os.geteuid() == 0:
                os.fchown(file, like.st_uid, like.st_gid)
            os.fchmod(file, stat.S_IMODE(like.st_mode))
            stream.write(content)
            stream.flush()
            os.fsync(file)

    def _failure(self, verb: str, error: OSError) -> StorageError:
        return StorageError(f"could not {verb} {self.path / AUTO_CONF}", detail=error.strerror)


def files_of(path: Path, connection: Connection) -> ServerFiles | None:
    """Return the data directory ``path`` if it is this running server's and its files can be reached.

    A copy of a cluster has the same system identifier: port and start time must fit as well.
    """
    files = ServerFiles(path)
    try:
        files.read_auto_conf()
        identifier = files.system_identifier()
        lines = (path / "postmaster.pid").read_text().splitlines()
    except (StorageError, DataDirectoryError, OSError):
        return None
    row = run(
        connection,
        "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system())::text,"
        " pg_catalog.current_setting('port'),"
        " pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())::float8",
    )[0]
    if len(lines) < 4:
        return None
    is_same = (identifier, lines[3].strip()) == (row[0], row[1])
    return files if is_same and abs(float(lines[2]) - row[2]) < _START_TOLERANCE_S else None
