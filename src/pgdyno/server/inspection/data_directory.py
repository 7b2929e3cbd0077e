"""Facts from the files of a data directory, whether its server runs or not.

Writes nothing.
"""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

from pgdyno.model.errors import DataDirectoryError, PrivilegeError
from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.servers.server import DataDirectory, FileSetting, Postmaster
from pgdyno.server.inspection.configuration_file import read_configuration
from pgdyno.server.inspection.regular_file import read_regular_file

_FILES = ("postgresql.conf", "postgresql.auto.conf")
_MAJOR = re.compile(r"[0-9]{1,4}")
_PID = re.compile(r"[1-9][0-9]{0,8}")
_PORT = re.compile(r"[0-9]{1,5}")
_SHOWN_CHARACTERS = 40  # arbitrary: of a file that should have two


def read_data_directory(path: Path) -> DataDirectory:
    """Read version, owner, configuration files and the postmaster's pid file.

    Raises: DataDirectoryError if it is not a data directory; PrivilegeError if its files are closed to us.
    """
    try:
        return DataDirectory(
            path=str(path),
            major=_major(path),
            owner=_owner(path),
            postmaster=_postmaster(path / "postmaster.pid"),
            settings=_settings(path),
        )
    except PermissionError as error:
        raise PrivilegeError(
            f'the files of data directory "{path}" are closed to this user',
            detail=f"{error.filename}: {error.strerror}",
            hint="run pgdyno as the user who owns it or as root, or reach the running server with --dsn",
        ) from error


def _major(path: Path) -> int:
    try:
        text = read_regular_file(path / "PG_VERSION").strip()
    except (FileNotFoundError, NotADirectoryError) as error:
        reason = "it has no file PG_VERSION" if path.is_dir() else "there is no such directory"
        raise DataDirectoryError(
            f'"{path}" is not a data directory',
            detail=reason,
            hint="Debian keeps data in /var/lib/postgresql/VERSION/CLUSTER, Red Hat in /var/lib/pgsql/data",
        ) from error
    except PermissionError:
        raise
    except OSError as error:
        raise DataDirectoryError(
            f'"{path}" is not a data directory', detail=f"its PG_VERSION cannot be read: {error.strerror}"
        ) from error
    if not _MAJOR.fullmatch(text):
        raise DataDirectoryError(
            f'"{path}" is not a data directory pgdyno knows',
            detail=f'its PG_VERSION says "{text[:_SHOWN_CHARACTERS]}"',
        )
    return int(text)


def _owner(path: Path) -> str:
    uid = path.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)  # a container's user has no name outside


def _settings(path: Path) -> Fact[tuple[FileSetting, ...]]:
    found = [path / name for name in _FILES if (path / name).is_file()]
    source = ", ".join(str(file) for file in found) or str(path / _FILES[0])
    if not found:
        return Fact(Unknown("the configuration is kept elsewhere, e.g. in /etc/postgresql"), source)
    try:
        return Fact(tuple(setting for file in found for setting in read_configuration(file)), source)
    except OSError as error:
        return Fact(Unknown(f"{error.filename}: {error.strerror}"), source)


def _postmaster(pid_file: Path) -> Fact[Postmaster]:
    """Read the pid file as src/include/utils/pidfile.h describes its lines."""
    source = str(pid_file)
    if not pid_file.is_file():
        return Fact(Unknown("not running: there is no postmaster.pid"), source)
    lines = read_regular_file(pid_file).splitlines()
    if len(lines) < 6 or not _PID.fullmatch(lines[0]) or not _PORT.fullmatch(lines[3]):
        return Fact(Unknown("starting, or stopped while starting: postmaster.pid is not complete"), source)
    pid = int(lines[0])
    if not _is_running(pid):
        return Fact(
            Unknown(f"not running: postmaster.pid names process {pid}, which is no PostgreSQL"), source
        )
    return Fact(Postmaster(pid, int(lines[3]), lines[4].strip() or None, lines[5].strip() or None), source)


def _is_running(pid: int) -> bool:
    """Whether the process with that id runs PostgreSQL.

    After a crash the id may belong to another process.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and belongs to another user
    name = Path(f"/proc/{pid}/comm")
    return not name.is_file() or name.read_text(encoding="utf-8").startswith(("postgres", "postmaster"))
