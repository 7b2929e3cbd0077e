"""Elements of arrays in shared memory, from gdb's words on their types.

For each type that the program has there is a line ``type BYTES ALIGNMENT NAME``, and after it what
``ptype /o`` prints: the members, and where none lies, a comment with ``4-byte hole`` or ``4-byte padding``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

from pgdyno.model.profiles.element_layout import ElementLayout
from pgdyno.profiling.misses.structures import DESCRIPTORS, FIRST, LOCKS, LOOKUP, PROCESSES

_TYPE = re.compile(r"^type (\d+) (\d+) (\w+)$", re.MULTILINE)
_UNUSED = re.compile(r"(\d+)-byte (?:hole|padding) +\*/")
_MAXIMUM_ALIGNMENT = 8  # of 64-bit servers; a hash table aligns its elements' heads and entries to it
_HEAD = "HASHELEMENT"


@dataclass(frozen=True)
class _Element:
    """An element: its parts' types, and the type that pads them, if any."""

    structure: str
    parts: tuple[str, ...]
    padded: str = ""


_ELEMENTS = (
    _Element(DESCRIPTORS, ("BufferDesc",), "BufferDescPadded"),
    _Element(LOOKUP, (_HEAD, "BufferLookupEnt")),
    _Element(FIRST, ("LWLock",), "LWLockPadded"),
    _Element(LOCKS, (_HEAD, "LOCK")),
    _Element(LOCKS, (_HEAD, "PROCLOCK")),
    _Element(PROCESSES, ("PGPROC",)),
)
ELEMENT_TYPES = tuple(dict.fromkeys(name for one in _ELEMENTS for name in (*one.parts, one.padded) if name))


@dataclass(frozen=True)
class _Type:
    size: int
    alignment: int
    unused: int

    @property
    def used(self) -> int:
        return self.size - self.unused


def parse_elements(words: str, line_bytes: int) -> tuple[ElementLayout, ...]:
    """Return the elements all of whose types the program has."""
    types = dict(_types(words))
    known = (one for one in _ELEMENTS if {*one.parts, one.padded or one.parts[0]} <= types.keys())
    return tuple(_layout(one, types, line_bytes) for one in known)


def _types(words: str) -> Iterator[tuple[str, _Type]]:
    _, *found = _TYPE.split(words)
    for size, alignment, name, members in zip(*(found[at::4] for at in range(4)), strict=True):
        unused = sum(int(count) for count in _UNUSED.findall(members))
        yield name, _Type(int(size), int(alignment), unused)


def _layout(one: _Element, types: Mapping[str, _Type], line_bytes: int) -> ElementLayout:
    parts = [types[name] for name in one.parts]
    if one.padded:
        size = types[one.padded].size
    else:
        size = sum(-(-part.size // _MAXIMUM_ALIGNMENT) * _MAXIMUM_ALIGNMENT for part in parts)
    return ElementLayout(
        one.structure,
        one.parts,
        size,
        max(part.alignment for part in parts),
        size - sum(part.used for part in parts),
        line_bytes,
        *_lines(size, line_bytes),
    )


def _lines(element_bytes: int, line_bytes: int) -> tuple[int, int]:
    """Return the fewest and the most lines that an element of an array lies in."""
    places = range(line_bytes // gcd(element_bytes, line_bytes))  # then it begins with a line again
    begins = (place * element_bytes % line_bytes for place in places)
    counts = [(begin + element_bytes - 1) // line_bytes + 1 for begin in begins]
    return min(counts), max(counts)
