"""Facts from the files of a data directory, whether its server runs or not.

Read-only. Root opens the directory once, and reads only with the owner's rights: links and include directives
in it may lead anywhere.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from pgdyno.base.errors import DataDirectoryError, PrivilegeError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.inspection.configuration_file import read_configuration, read_regular_file
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.server import DataDirectory, FileSetting, Postmaster

_FILES = ("postgresql.conf", "postgresql.auto.conf")
_MAJOR = re.compile(r"[0-9]{1,4}")
_PID = re.compile(r"[1-9][0-9]{0,8}")
_PORT = re.compile(r"[0-9]{1,5}")
_SHOWN_CHARACTERS = 40  # arbitrary; PG_VERSION should have two


def read_data_directory(path: Path) -> DataDirectory:
    """Read version, owner, configuration files and the postmaster's pid file.

    Raises: DataDirectoryError if it is not a data directory; PrivilegeError if its files are not readable.
    """
    try:
        with _opened(path) as (place, uid):
            return DataDirectory(
                path=str(path),
                major=_major(path, place),
                owner=_name_of(uid),
                postmaster=_postmaster(path / "postmaster.pid", place),
                settings=_settings(path, place),
            )
    except PermissionError as error:
        raise _closed(path, f"{error.filename or path}: {error.strerror}") from error


def _closed(path: Path, detail: str) -> PrivilegeError:
    if os.geteuid() == 0:
        return PrivilegeError(
            f'the owner of data directory "{path}", whose rights root uses, cannot read its files',
            detail=detail,
            hint="make that user the owner of the files, as the server requires",
        )
    return PrivilegeError(
        f'the files of data directory "{path}" are not readable by this user',
        detail=detail,
        hint="run pgdyno as the user who owns it or as root, or reach the running server with --dsn",
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Path, int]]:
    """Provide a path to the opened directory, and its owner's user id, with which root acts in the block.

    Errors name files by ``path``. Raises: DataDirectoryError, OSError.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _no_data_directory(path, "there is no such directory") from error
    place = Path(f"/proc/self/fd/{descriptor}")
    try:
        uid = os.fstat(descriptor).st_uid
        with acting_as(uid) if os.geteuid() == 0 != uid else nullcontext():
            yield place, uid
    except OSError as error:
        error.filename = _shown(str(error.filename), path, place)
        raise
    finally:
        os.close(descriptor)


def _shown(name: str, path: Path, place: Path) -> str:
    """Return a file's name below the user's ``path`` instead of the opened ``place``."""
    return str(path / Path(name).relative_to(place)) if Path(name).is_relative_to(place) else name


def _no_data_directory(path: Path, reason: str) -> DataDirectoryError:
    return DataDirectoryError(
        f'"{path}" is not a data directory',
        detail=reason,
        hint="Debian keeps data in /var/lib/postgresql/VERSION/CLUSTER, Red Hat in /var/lib/pgsql/data",
    )


def _major(path: Path, place: Path) -> int:
    try:
        text = read_regular_file(place / "PG_VERSION").strip()
    except FileNotFoundError as error:
        raise _no_data_directory(path, "it has no file PG_VERSION") from error
    except PermissionError:
        raise
    except OSError as error:
        raise DataDirectoryError(
            f'"{path}" is not a data directory', detail=f"its PG_VERSION cannot be read: {error.strerror}"
        ) from error
    if not _MAJOR.fullmatch(text):
        raise DataDirectoryError(
            f'"{path}" is not a data directory pgdyno knows',
            detail=f'its PG_VERSION contains "{text[:_SHOWN_CHARACTERS]}"',
        )
    return int(text)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)  # a container's user has no name on the host


def _settings(path: Path, place: Path) -> Fact[tuple[FileSetting, ...]]:
    found = [name for name in _FILES if (place / name).is_file()]
    source = ", ".join(str(path / name) for name in found or _FILES[:1])
    if not found:
        return Fact(Unknown("the configuration is kept elsewhere, e.g. in /etc/postgresql"), source)
    try:
        settings = [setting for name in found for setting in read_configuration(place / name)]
    except OSError as error:
        return Fact(Unknown(f"{_shown(str(error.filename), path, place)}: {error.strerror}"), source)
    return Fact(tuple(replace(one, file=_shown(one.file, path, place)) for one in settings), source)


def _postmaster(path: Path, place: Path) -> Fact[Postmaster]:
    """Read the pid file as src/include/utils/pidfile.h describes its lines."""
    source, pid_file = str(path), place / path.name
    if not pid_file.is_file():
        return Fact(Unknown("not running: there is no postmaster.pid"), source)
    lines = read_regular_file(pid_file).splitlines()
    if len(lines) < 6 or not _PID.fullmatch(lines[0]) or not _PORT.fullmatch(lines[3]):
        return Fact(Unknown("starting, or stopped while starting: postmaster.pid is incomplete"), source)
    pid = int(lines[0])
    if not _is_running(pid):
        return Fact(
            Unknown(f"not running: postmaster.pid names process {pid}, which is not PostgreSQL"), source
        )
    return Fact(Postmaster(pid, int(lines[3]), lines[4].strip() or None, lines[5].strip() or None), source)


def _is_running(pid: int) -> bool:
    """Whether the process with this id runs PostgreSQL; after a crash, the id may have been reused."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists and belongs to another user
    name = Path(f"/proc/{pid}/comm")
    return not name.is_file() or name.read_text(encoding="utf-8").startswith(("postgres", "postmaster"))
