"""Parse memory accesses, as written by ``valgrind --tool=lackey --trace-mem=yes``.

A line ``I  04a2a353,6`` is an instruction. Each of its loads follows as a line ``_L 1ffefff788,8``, with a
space for _; ``S`` is a store, ``M`` a load and store at one address. Addresses are hexadecimal, sizes
decimal. Source: valgrind's manual, "Lackey: an example tool". About half a million lines are parsed at once,
with arrays.
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
_SHORTEST = _HEAD + 10  # an address of at least eight digits, a comma, and a size of at least one
_MOST_DIGITS, _MOST_SIZE_DIGITS = (
    15,
    3,
)  # limit of signed 64-bit numbers; sizes are at most some hundred
_INSTRUCTION, _SPACE, _COMMA, _NEW_LINE, _ZERO = b"I ,\n0"
_DATA = np.zeros(256, dtype=np.bool_)
_DATA[list(b"LSM")] = True
_DIGITS = np.zeros(256, dtype=np.int64)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _place


@dataclass(frozen=True)
class Accesses:
    """Accesses in order: whether each is an instruction fetch, its address, and its size in bytes."""

    is_code: Flags
    addresses: Numbers
    sizes: Numbers

    def part(self, begin: int, end: int) -> Accesses:
        """Return the accesses from position ``begin`` up to ``end``."""
        return Accesses(self.is_code[begin:end], self.addresses[begin:end], self.sizes[begin:end])


def accesses_in(pieces: Iterable[bytes]) -> Iterator[Accesses]:
    """Yield the accesses of a trace; a piece may end within a line."""
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        yield parse_accesses(lines + end)


def parse_accesses(lines: bytes) -> Accesses:
    """Return the accesses in whole lines; valgrind's own messages are skipped."""
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
        _parse_numbers(text, starts + _HEAD, commas, base=16, most=_MOST_DIGITS),
        _parse_numbers(text, commas + 1, ends, base=10, most=_MOST_SIZE_DIGITS),
    )


def _commas(text: Bytes, ends: Numbers) -> Numbers:
    """Return the position of each line's comma, before the size; −1 for a line without one."""
    commas = np.full(len(ends), -1, dtype=np.int64)
    for digits in range(1, _MOST_SIZE_DIGITS + 1):
        at = ends - digits - 1
        commas = np.where((commas < 0) & (text[at] == _COMMA), at, commas)
    return commas


def _parse_numbers(text: Bytes, begins: Numbers, ends: Numbers, *, base: int, most: int) -> Numbers:
    numbers = np.zeros(len(begins), dtype=np.int64)
    longest = min(most, int((ends - begins).max(initial=0)))
    for place in range(longest):
        at = ends - 1 - place
        numbers += np.where(at >= begins, _DIGITS[text[at]], 0) * base**place
    return numbers
