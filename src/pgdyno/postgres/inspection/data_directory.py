"""Facts from the files of a data directory, whether its server runs or not.

Read-only. Root opens the directory once, and reads only with the owner's rights: links and include directives
in it may lead anywhere.

Configuration files: the grammar is in src/backend/utils/misc/guc-file.l. The result is a file's contents
only: whether a value is in effect depends on the command line, on later files and on the server. The files
are untrusted: a data directory's owner may have replaced them with anything.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pgdyno.base.errors import DataDirectoryError, PrivilegeError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.alter_system import unquoted
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.secrets import redacted
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


_INCLUDE_DEPTH = 10  # as CONF_FILE_MAX_DEPTH in src/include/utils/conffiles.h
_MOST: Mapping[str, int] = MappingProxyType(
    {"files": 250, "characters": 4 << 20, "settings": 10_000, "names of directories": 10_000}
)
"""Arbitrary: repeated includes, of the file itself or of a large one, could take hours and all memory."""
_LINE = re.compile(
    r"""\s* (?P<name> [A-Za-z_][\w$]* (?: \.[A-Za-z_][\w$]* )* )
        (?: \s*=\s* | \s+ )
        (?P<value> '(?: [^'\\\n] | \\. | '' )*' | [^\s\#'=]+ )
        \s* (?: \#.* )? $""",
    re.VERBOSE,
)
_MOST_BYTES = 1 << 20  # as in host/files/directory.py; a configuration file has a few kilobytes


def parse_line(line: str) -> tuple[str, str] | None:
    """Return a line's name and value; None for a comment, an empty line or a syntax error."""
    match = _LINE.match(line)
    if match is None:
        return None
    return match["name"].lower(), unquoted(match["value"])


def read_configuration(path: Path) -> Iterator[FileSetting]:
    """Return the settings of a file and of its included files, in the server's order; secrets redacted.

    Raises: OSError if one of the files cannot be read, or if they are too many or too large in total.
    """
    return _read(path, 0, Counter())


def _read(path: Path, depth: int, counted: Counter[str]) -> Iterator[FileSetting]:
    _count(counted, "files", 1, path)
    text = read_regular_file(path)
    _count(counted, "characters", len(text), path)
    for number, line in enumerate(text.split("\n"), start=1):
        setting = parse_line(line)
        if setting is None:
            continue
        name, value = setting
        if name in ("include", "include_if_exists", "include_dir"):
            if depth < _INCLUDE_DEPTH:
                yield from _included(name, path.parent / value, depth + 1, counted)
        else:
            _count(counted, "settings", 1, path)
            yield FileSetting(name, redacted(name, value), str(path), number)


def _count(counted: Counter[str], what: str, more: int, path: Path) -> None:
    counted[what] += more
    if counted[what] > _MOST[what]:
        raise OSError(errno.EFBIG, f"more than {_MOST[what]:,} {what} are included", str(path))


def _included(directive: str, target: Path, depth: int, counted: Counter[str]) -> Iterator[FileSetting]:
    if directive == "include_dir":
        included = _in_directory(target, counted) if target.is_dir() else []
    else:
        included = [target] if directive == "include" or target.exists() else []
    for file in included:
        yield from _read(file, depth, counted)


def _in_directory(directory: Path, counted: Counter[str]) -> list[Path]:
    """Return the .conf files in C collation order, without hidden ones, as GetConfFilesInDir does."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            _count(counted, "names of directories", 1, directory)
            if entry.name.endswith(".conf") and not entry.name.startswith("."):
                found.append(directory / entry.name)
    return sorted(found)


def read_regular_file(path: Path) -> str:
    """Return a file's text; invalid UTF-8 is replaced.

    Raises: OSError, also for a file that is not regular (a FIFO or device may never end) or above 1 MiB.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name contains a NUL byte", str(path))
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)  # O_PATH: opening a device can have side effects
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = _start_of(handle, path)
    finally:
        os.close(handle)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB", str(path))
    return content.decode(errors="replace")


def _start_of(handle: int, path: Path) -> bytes:
    try:
        with Path(f"/proc/self/fd/{handle}").open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the user's name for it
