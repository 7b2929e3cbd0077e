"""Read PostgreSQL's configuration files as text.

Parsing only, except ``read_configuration`` and ``read_regular_file``.

Grammar: src/backend/utils/misc/guc-file.l. The result is a file's contents only: whether a value is in effect
depends on the command line, on later files and on the server.

The files are untrusted: a data directory's owner may have replaced them with anything.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from pgdyno.postgres.guc_text import unquoted
from pgdyno.postgres.secrets import redacted
from pgdyno.postgres.server import FileSetting

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
