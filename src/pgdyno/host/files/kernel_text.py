"""Parsers for the formats of kernel values in /proc and /sys.

Pure: text in, value or Unknown out.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst ("Conventions"), Documentation/filesystems/proc.rst,
Documentation/admin-guide/cputopology.rst.
"""

from __future__ import annotations

import re

from pgdyno.base.facts import Unknown
from pgdyno.host.cpu_list import parse_cpu_list

_SIZE = re.compile(r"^(\d+)\s*([KMG]?)B?$", re.IGNORECASE)
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def number(text: str) -> int | Unknown:
    """Parse a whole number, which may be negative."""
    try:
        return int(text)
    except ValueError:
        return Unknown(f'not a number: "{_short(text)}"')


def flag(text: str) -> bool | Unknown:
    """Parse 0 or 1."""
    return {"0": False, "1": True}.get(text, Unknown(f'neither 0 nor 1: "{_short(text)}"'))


def size_bytes(text: str) -> int | Unknown:
    """Parse a size with an optional binary unit: ``32K``, ``24684092 kB``, ``2097152``."""
    match = _SIZE.match(text)
    if match is None:
        return Unknown(f'not a size: "{_short(text)}"')
    return int(match[1]) * _FACTOR[match[2].upper()]


def kilobytes(text: str) -> int | Unknown:
    """Parse a number of KiB without a unit; the result is in bytes."""
    count = number(text)
    return count if isinstance(count, Unknown) else count * 1024


def cpu_list(text: str) -> tuple[int, ...] | Unknown:
    """Parse a list of CPUs or nodes: ``0-3,8`` → (0, 1, 2, 3, 8)."""
    found = parse_cpu_list(text)
    return Unknown(f'not a list of CPUs: "{_short(text)}"') if found is None else found


def chosen(text: str) -> str | Unknown:
    """Return the choice in brackets: ``always [madvise] never`` → ``madvise``; a single word is itself."""
    match = re.search(r"\[([^\]]*)\]", text)
    if match is not None:
        return match[1]
    return text if text and len(text.split()) == 1 else Unknown(f'no choice in brackets: "{_short(text)}"')


def key_values(text: str) -> dict[str, str]:
    """Parse lines of ``key: value`` as in meminfo, status and cpuinfo; the first of equal keys counts."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def _short(text: str) -> str:
    """Cut long text, so that a reason stays one line."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."
