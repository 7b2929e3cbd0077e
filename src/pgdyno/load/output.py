"""Read the output of a generator, which may have written as much as the disk holds."""

from __future__ import annotations

import os
from pathlib import Path

_CHARACTERS = 800
_END_BYTES = 64 << 10  # a driver's error of a whole statement


def output_end(file: Path) -> str:
    """Return the end of a generator's output."""
    with file.open("rb") as output:
        size_bytes = output.seek(0, os.SEEK_END)
        output.seek(max(0, size_bytes - _END_BYTES))
        return output.read(_END_BYTES).decode(errors="replace")


def last_words(output: str) -> str:
    """Return as much of the output's end as an error shows."""
    return output.strip()[-_CHARACTERS:]
