"""Debian's ``pg_ctl.conf``: the options that a cluster's pg_ctl is called with. Pure.

pg_ctlcluster(1) splits the options at spaces and gives them to every call of pg_ctl; with ``-p`` that starts
another program than the ``postgres`` beside itself.
"""

from __future__ import annotations

import re
from pathlib import Path

NAME = "pg_ctl_options"
_LINE = re.compile(rf"^(\s*{NAME}\s*=\s*')([^'\n]*)('.*)$", re.MULTILINE)
_PROGRAM = "-p"


def options_in(text: str) -> str | None:
    """Return the options; None if no line sets them, or not in the form that pg_createcluster writes."""
    found = _LINE.findall(text)
    return found[-1][1] if len(found) == 1 else None


def with_options(text: str, options: str) -> str:
    """Return the file's text with other options; nothing else changes. There has to be such a line."""
    return _LINE.sub(lambda line: f"{line[1]}{options}{line[3]}", text)


def program_in(options: str) -> Path | None:
    """Return the program that the options name; None: the ``postgres`` beside pg_ctl."""
    words = options.split()
    for place, word in enumerate(words):
        if word == _PROGRAM and place + 1 < len(words):
            return Path(words[place + 1])
        if word.startswith(_PROGRAM) and len(word) > len(_PROGRAM):
            return Path(word.removeprefix(_PROGRAM))
    return None


def naming(options: str, program: Path) -> str:
    """Return the options with this program in place of another one."""
    words, kept = options.split(), []
    while words:
        word = words.pop(0)
        if word == _PROGRAM:
            words = words[1:]
        elif not word.startswith(_PROGRAM):
            kept.append(word)
    return " ".join([*kept, _PROGRAM, str(program)])
