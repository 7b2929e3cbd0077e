"""Generated values of types without a scale: texts, UUIDs, bytes, addresses.

A value is computed from its ordinal: equal ordinals give equal values, larger ones give values that sort
later in the C collation and in nearly all languages. Only two properties of the original are reproduced:
lengths, and whether all texts consist of digits or of capital letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pgdyno.workload.synthesis.ordering import Integers, fractions, mixed

_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
ALL_CHARACTERS = _DIGITS + _UPPER + _LOWER
"""For short texts: one kind of characters may be too few to make them unique."""
_LONGEST = 1 << 20  # bytes of a text: arbitrary; all rows of a block are generated at once
_WIDEST_KNOWN = 1024  # bytes: ANALYZE keeps no wider values (WIDTH_THRESHOLD)
_LETTERS_OF_A_HASH = 12  # of 5 bits each
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_UUID_CUTS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
_TEN = 1 << 24  # number of addresses in 10.0.0.0/8, which are private (RFC 1918)


def alphabet_of(known: Sequence[str]) -> bytes:
    """Return the alphabet for texts: digits or capital letters if known texts consist only of these."""
    if known and all(one.isdigit() and one.isascii() for one in known):
        return _DIGITS
    return _UPPER if known and all(one.isupper() for one in known) else _LOWER


def made_up_texts(numbers: Integers, total: int, lengths: Integers, alphabet: bytes, seed: int) -> list[str]:
    """Return texts by their ordinals among ``total``: a sorted prefix, followed by random letters.

    Shapes: numbers, lengths (n,). Texts have these lengths, or more if necessary to make all of them differ.
    """
    digits = _digits(total, len(alphabet))
    lengths = np.clip(lengths, digits, _LONGEST)
    width = int(lengths.max(initial=digits))
    letters = np.frombuffer(alphabet, dtype=np.uint8)
    matrix = np.empty((len(numbers), width), dtype=np.uint8)
    codes = _spread(numbers, total, len(alphabet) ** digits)
    for place in range(digits - 1, -1, -1):
        matrix[:, place] = letters[codes % len(alphabet)]
        codes = codes // len(alphabet)
    for place in range(digits, width):
        nth, part = divmod(place - digits, _LETTERS_OF_A_HASH)
        if part == 0:
            chance = mixed(numbers, seed + nth)
        bits = (chance >> np.uint64(5 * part)) & np.uint64(31)
        matrix[:, place] = letters[(bits * np.uint64(len(alphabet)) >> np.uint64(5)).astype(np.int64)]
    whole = matrix.tobytes().decode("ascii")
    return [whole[start : start + length] for start, length in _cuts(width, lengths)]


def uuids(numbers: Integers, total: int, seed: int) -> list[str]:
    """Return UUIDs by their ordinals, in this order; they have the form of random UUIDs."""
    raw = np.empty((len(numbers), 16), dtype=np.uint8)
    raw[:, :6] = _octets(_spread(numbers, total, 1 << 48), 6)
    raw[:, 6:9] = _octets((mixed(numbers, seed) >> np.uint64(40)).astype(np.int64), 3)
    raw[:, 9:] = _octets(numbers, 7)  # the ordinal itself makes them unique
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    whole = _hexadecimal(raw)
    starts = range(0, 32 * len(numbers), 32)
    return ["-".join(whole[at + low : at + high] for low, high in _UUID_CUTS) for at in starts]


def hexadecimal_bytes(numbers: Integers, total: int, lengths: Integers, seed: int) -> list[str]:
    """Return ``bytea`` values as text by their ordinals; like texts of ``lengths`` bytes."""
    texts = made_up_texts(numbers, total, lengths, _LOWER, seed)
    return [f"\\x{one.encode().hex()}" for one in texts]


def addresses(numbers: Integers, total: int) -> list[str]:
    """Return addresses by their ordinals: in 10.0.0.0/8, or in IPv6's private fd00::/8 if there are more."""
    if total > _TEN:
        return [f"fd00::{one >> 32:x}:{one >> 16 & 0xFFFF:x}:{one & 0xFFFF:x}" for one in numbers.tolist()]
    spread = _spread(numbers, total, _TEN).tolist()
    return [f"10.{one >> 16}.{one >> 8 & 255}.{one & 255}" for one in spread]


def bytes_of(text: str, type_: str) -> int:
    """Return the length of a known value of a type in bytes, at most 1024."""
    length = (len(text) - 2) // 2 if type_ == "bytea" else len(text.encode())  # after \x, two digits each
    return min(_WIDEST_KNOWN, max(1, length))


def lengths_like(numbers: Integers, known: Sequence[int], usual: int, seed: int) -> Integers:
    """Return lengths by ordinals: those of known values, scaled to a mean of ``usual``."""
    if not known:
        return np.full(len(numbers), max(1, usual), dtype=np.int64)
    drawn = np.array(known, dtype=np.float64)[(fractions(numbers, seed) * len(known)).astype(np.int64)]
    mean = max(1.0, float(np.mean(known)))
    most = max(_WIDEST_KNOWN, 4 * usual)
    return np.clip(np.round(drawn * (max(1, usual) / mean)), 1, most).astype(np.int64)


Maker = Callable[[Integers, int, Integers, int], list[str]]
"""Generates values of a type from ordinals, total number, lengths and seed."""

MAKERS: dict[str, Maker] = {
    "uuid": lambda numbers, total, _, seed: uuids(numbers, total, seed),
    "bytea": hexadecimal_bytes,
    "inet": lambda numbers, total, _lengths, _seed: addresses(numbers, total),
    "cidr": lambda numbers, total, _lengths, _seed: addresses(numbers, total),
}
"""Makers for types other than texts."""


def _digits(total: int, base: int) -> int:
    digits = 1
    while base**digits < total:
        digits += 1
    return digits


def _spread(numbers: Integers, total: int, room: int) -> Integers:
    """Spread numbers below ``total`` evenly over numbers below ``room``, in the same order."""
    step = max(1, room // max(1, total))
    return numbers * np.int64(step)


def _octets(numbers: Integers, count: int) -> NDArray[np.uint8]:
    shifts = np.arange(8 * (count - 1), -1, -8)
    return (numbers[:, None] >> shifts & 0xFF).astype(np.uint8)


def _cuts(width: int, lengths: Integers) -> list[tuple[int, int]]:
    return list(zip(range(0, width * len(lengths), width), lengths.tolist(), strict=True))


def _hexadecimal(raw: NDArray[np.uint8]) -> str:
    pairs = np.empty((raw.shape[0], 2 * raw.shape[1]), dtype=np.uint8)
    pairs[:, 0::2], pairs[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    return pairs.tobytes().decode("ascii")
