"""Read PostgreSQL's configuration files as text.

Parsing alone, apart from ``read_configuration``.

Grammar: src/backend/utils/misc/guc-file.l. Only what a file says: whether a value is in force depends on
the command line, on later files and on the server, which alone knows.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pgdyno.model.servers.guc_text import unquoted
from pgdyno.model.servers.secrets import redacted
from pgdyno.model.servers.server import FileSetting
from pgdyno.server.inspection.regular_file import read_regular_file

_INCLUDE_DEPTH = 10  # as CONF_FILE_MAX_DEPTH in src/include/utils/conffiles.h
_MOST_FILES = 250  # arbitrary: files that include themselves many times never end
_LINE = re.compile(
    r"""\s* (?P<name> [A-Za-z_][\w$]* (?: \.[A-Za-z_][\w$]* )* )
        (?: \s*=\s* | \s+ )
        (?P<value> '(?: [^'\\\n] | \\. | '' )*' | [^\s\#'=]+ )
        \s* (?: \#.* )? $""",
    re.VERBOSE,
)


def parse_line(line: str) -> tuple[str, str] | None:
    """Return name and value of one line; None for a comment, an empty line, or one that is not valid."""
    match = _LINE.match(line)
    if match is None:
        return None
    return match["name"].lower(), unquoted(match["value"])


def read_configuration(path: Path) -> Iterator[FileSetting]:
    """Return the settings of a file and of the files it includes, in the server's order; secrets redacted.

    Raises: OSError if the file, or a file that it includes, cannot be read.
    """
    return _read(path, 0, count(1))


def _read(path: Path, depth: int, files: Iterator[int]) -> Iterator[FileSetting]:
    if next(files) > _MOST_FILES:
        raise OSError(errno.ELOOP, f"more than {_MOST_FILES} files are included", str(path))
    for number, line in enumerate(read_regular_file(path).split("\n"), start=1):
        setting = parse_line(line)
        if setting is None:
            continue
        name, value = setting
        if name in ("include", "include_if_exists", "include_dir"):
            if depth < _INCLUDE_DEPTH:
                yield from _included(name, path.parent / value, depth + 1, files)
        else:
            yield FileSetting(name, redacted(name, value), str(path), number)


def _included(directive: str, target: Path, depth: int, files: Iterator[int]) -> Iterator[FileSetting]:
    if directive == "include_dir":
        # In C's collation, and never hidden files, as GetConfFilesInDir does.
        included = sorted(path for path in target.glob("*.conf") if not path.name.startswith("."))
    else:
        included = [target] if directive == "include" or target.exists() else []
    for file in included:
        yield from _read(file, depth, files)
