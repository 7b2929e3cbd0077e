"""Read kernel files and CPU registers by path or by pattern, and parse the formats of kernel values.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst ("Conventions"), Documentation/filesystems/proc.rst,
Documentation/admin-guide/cputopology.rst.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.cpu_list import parse_cpu_list
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.msr import register_of

_LIMIT_BYTES = 4096  # a page: the kernel's maximum for one value
_SIZE = re.compile(r"^(\d+)\s*([KMG]?)B?$", re.IGNORECASE)
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_kernel_files(tree: Tree, patterns: Iterable[str]) -> dict[str, Fact[str]]:
    """Return the first line of every file that a pattern matches, by path.

    Registers are named as in ``host/msr.py``.

    ``*`` matches one name in a directory: ``/sys/block/*/queue/scheduler``. A missing file is unknown if its
    path has no ``*``; a pattern without matches adds nothing.
    """
    found: dict[str, Fact[str]] = {}
    for pattern in patterns:
        for path in _matching(tree, pattern):
            fact = _value(tree, path)
            if fact.is_known or "*" not in pattern:
                found[path] = fact
    return found


def _value(tree: Tree, path: str) -> Fact[str]:
    register = register_of(path)
    if register is not None:
        return parsed(tree.register(register.device, register.number), hex)
    return parsed(tree.text(path, _LIMIT_BYTES), _first_line)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _matching(tree: Tree, pattern: str) -> list[str]:
    """Return the paths that a pattern may match; a last name without ``*`` is not checked for existence."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part:
            found = [f"{path}/{name}" for path in found for name in _names(tree, path, part)]
        else:
            found = [f"{path}/{part}" for path in found]
    return found


def _names(tree: Tree, path: str, pattern: str) -> list[str]:
    return fnmatch.filter(tree.names(path or "/").or_else(()), pattern)


def number(text: str) -> int | Unknown:
    """Parse an integer."""
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
    """Return the choice in brackets: ``always [madvise] never`` → ``madvise``; a single word as it is."""
    match = re.search(r"\[([^\]]*)\]", text)
    if match is not None:
        return match[1]
    return text if text and len(text.split()) == 1 else Unknown(f'no choice in brackets: "{_short(text)}"')


def key_values(text: str) -> dict[str, str]:
    """Parse lines of ``key: value`` as in meminfo, status and cpuinfo; the first of equal keys is kept."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def _short(text: str) -> str:
    """Cut long text to keep a reason on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."
