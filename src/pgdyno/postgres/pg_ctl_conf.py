"""Debian's ``pg_ctl.conf``: the options passed to a cluster's pg_ctl. Pure.

pg_ctlcluster(1) splits the options at spaces and passes them to every pg_ctl call. With ``-p``, pg_ctl starts
a different program than the ``postgres`` in its own directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NAME = "pg_ctl_options"
_LINE = re.compile(rf"^([^\S\n]*{NAME}[^\S\n]*=[^\S\n]*')([^'\n]*)('[ \t]*(?:#.*)?)$", re.MULTILINE)
_PROGRAM, _FOR_SERVER = "-p", "-o"  # pg_ctl's: the server executable; the server's options, one argument


def options_in(text: str) -> str | None:
    """Return the options; None if no single line sets them in the form that pg_createcluster writes."""
    found = _LINE.findall(text)
    return found[-1][1] if len(found) == 1 else None


def with_options(text: str, options: str) -> str:
    """Return the file's text with the options replaced. The text must contain a line that sets them."""
    return _LINE.sub(lambda line: f"{line[1]}{options}{line[3]}", text)


def program_in(options: str) -> Path | None:
    """Return the server executable that the options name; None: ``postgres`` in pg_ctl's directory."""
    named = [one[-1].removeprefix(_PROGRAM) for one in _each(options) if one[0].startswith(_PROGRAM)]
    return Path(named[-1]) if named and named[-1] else None


def naming(options: str, program: Path) -> str:
    """Return the options with ``program`` as the server executable."""
    kept = [word for one in _each(options) if not one[0].startswith(_PROGRAM) for word in one]
    return " ".join([*kept, _PROGRAM, str(program)])


def _each(options: str) -> Iterator[tuple[str, ...]]:
    """Yield each option with its separate argument, which may itself look like an option."""
    words = iter(options.split())
    for word in words:
        argument = next(words, None) if word in (_PROGRAM, _FOR_SERVER) else None
        yield (word,) if argument is None else (word, argument)
