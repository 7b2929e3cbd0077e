"""Accesses to memory as ``valgrind --tool=lackey --trace-mem=yes`` writes them.

A line is ``I  04a2a353,6`` for an instruction, and after it for each of its loads ``_L 1ffefff788,8``, with a
space for _; ``S`` is a store, ``M`` both at one place. Addresses have hexadecimal digits, sizes decimal ones.
Source: valgrind's manual, "Lackey: an example tool". Half a million lines are read at once, by arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_HEAD = 3  # characters before an address
_SHORTEST = _HEAD + 10  # an address has at least eight digits, a size one; and the comma
_MOST_DIGITS, _MOST_SIZE_DIGITS = (
    15,
    3,
)  # a signed number has room for no more; a size is at most some hundred
_INSTRUCTION, _SPACE, _COMMA, _NEW_LINE, _ZERO = b"I ,\n0"
_DATA = np.zeros(256, dtype=np.bool_)
_DATA[list(b"LSM")] = True
_DIGITS = np.zeros(256, dtype=np.int64)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _place


@dataclass(frozen=True)
class Accesses:
    """Accesses in their order: whether each is of an instruction, where it begins, and how long it is."""

    is_code: Flags
    addresses: Numbers
    sizes: Numbers

    def part(self, begin: int, end: int) -> Accesses:
        """Return those from one place to another."""
        return Accesses(self.is_code[begin:end], self.addresses[begin:end], self.sizes[begin:end])


def accesses_in(pieces: Iterable[bytes]) -> Iterator[Accesses]:
    """Yield the accesses of a trace, of which each piece may end within a line."""
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        yield parse_accesses(lines + end)


def parse_accesses(lines: bytes) -> Accesses:
    """Return the accesses in whole lines; valgrind's own words among them are passed over."""
    text = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEW_LINE)
    starts = np.concatenate((np.zeros(min(1, len(ends)), dtype=np.int64), ends[:-1] + 1))
    is_long = ends - starts >= _SHORTEST
    starts, ends = starts[is_long], ends[is_long]
    first, second = text[starts], text[starts + 1]
    is_code = (first == _INSTRUCTION) & (second == _SPACE)
    commas = _commas(text, ends)
    is_access = (is_code | ((first == _SPACE) & _DATA[second])) & (commas >= 0)
    starts, ends, commas = starts[is_access], ends[is_access], commas[is_access]
    return Accesses(
        is_code[is_access],
        _number(text, starts + _HEAD, commas, base=16, most=_MOST_DIGITS),
        _number(text, commas + 1, ends, base=10, most=_MOST_SIZE_DIGITS),
    )


def _commas(text: Bytes, ends: Numbers) -> Numbers:
    """Return where each line's size begins; −1 for a line without one."""
    commas = np.full(len(ends), -1, dtype=np.int64)
    for digits in range(1, _MOST_SIZE_DIGITS + 1):
        at = ends - digits - 1
        commas = np.where((commas < 0) & (text[at] == _COMMA), at, commas)
    return commas


def _number(text: Bytes, begins: Numbers, ends: Numbers, *, base: int, most: int) -> Numbers:
    """Return the numbers that are written between places."""
    numbers = np.zeros(len(begins), dtype=np.int64)
    longest = min(most, int((ends - begins).max(initial=0)))
    for place in range(longest):
        at = ends - 1 - place
        numbers += np.where(at >= begins, _DIGITS[text[at]], 0) * base**place
    return numbers
