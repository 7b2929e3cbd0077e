"""Texts of TOML files, as far as Python's parser reads them in a short time."""

from __future__ import annotations

import re
from io import TextIOWrapper
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.store.plain_file import open_plain

MOST_DOTS = 500
"""In a line, outside of quotation marks: Python's parser takes time by the square of a key's parts."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def toml_text(path: Path, most_characters: int, kind: type[UsageError], hint: str) -> str:
    """Return a file's text. ``hint`` is for a file with more than ``most_characters``.

    Raises: an error of this ``kind`` for one that would take long to parse; OSError.
    """
    with TextIOWrapper(open_plain(path), encoding="utf-8") as file:
        text = file.read(most_characters + 1)
    if len(text) > most_characters:
        raise kind(
            f'"{path}" is too large',
            detail=f"it has more than {most_characters} characters, the most that are read",
            hint=hint,
        )
    for number, line in enumerate(text.split("\n"), 1):
        if (dots := _QUOTED.sub("", line).count(".")) > MOST_DOTS:
            raise kind(
                f'line {number} of "{path}" has {dots} dots',
                detail=f"at most {MOST_DOTS} are read: a key of so many parts takes minutes",
                hint="write a long text in several lines, between three quotation marks",
            )
    return text
