"""Debian's ``pg_ctl.conf``: the options that a cluster's pg_ctl is called with. Pure.

pg_ctlcluster(1) splits the options at spaces and gives them to every call of pg_ctl; with ``-p`` that starts
another program than the ``postgres`` beside itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NAME = "pg_ctl_options"
_LINE = re.compile(rf"^([^\S\n]*{NAME}[^\S\n]*=[^\S\n]*')([^'\n]*)('[ \t]*(?:#.*)?)$", re.MULTILINE)
_PROGRAM, _FOR_SERVER = "-p", "-o"  # pg_ctl's: the server's program; the server's own options, in one word


def options_in(text: str) -> str | None:
    """Return the options; None if no line sets them, or not in the form that pg_createcluster writes."""
    found = _LINE.findall(text)
    return found[-1][1] if len(found) == 1 else None


def with_options(text: str, options: str) -> str:
    """Return the file's text with other options; nothing else changes. There has to be such a line."""
    return _LINE.sub(lambda line: f"{line[1]}{options}{line[3]}", text)


def program_in(options: str) -> Path | None:
    """Return the program that the options name; None: the ``postgres`` next to pg_ctl."""
    named = [one[-1].removeprefix(_PROGRAM) for one in _each(options) if one[0].startswith(_PROGRAM)]
    return Path(named[-1]) if named and named[-1] else None


def naming(options: str, program: Path) -> str:
    """Return the options with this program in place of another one."""
    kept = [word for one in _each(options) if not one[0].startswith(_PROGRAM) for word in one]
    return " ".join([*kept, _PROGRAM, str(program)])


def _each(options: str) -> Iterator[tuple[str, ...]]:
    """Yield each option, together with its argument where that is a word of its own and may look like one."""
    words = iter(options.split())
    for word in words:
        argument = next(words, None) if word in (_PROGRAM, _FOR_SERVER) else None
        yield (word,) if argument is None else (word, argument)
