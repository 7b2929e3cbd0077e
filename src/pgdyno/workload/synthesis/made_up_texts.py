"""Made-up values of types without a scale: texts, UUIDs, bytes, addresses.

The number of a value in the order of all makes it: equal numbers give equal values, larger ones later values
in the order of C, and of nearly all languages. Nothing of the original is in them but lengths, and whether
it had digits, or capital letters, alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pgdyno.workload.synthesis.ordering import Integers, fractions, mixed

_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
ALL_CHARACTERS = _DIGITS + _UPPER + _LOWER
"""For short texts of which there are more than one kind of characters makes."""
_LONGEST = 1 << 20  # bytes of a text: arbitrary; as many rows as a block has are made at once
_WIDEST_KNOWN = 1024  # bytes: ANALYZE keeps no wider values (WIDTH_THRESHOLD)
_LETTERS_OF_A_HASH = 12  # of 5 bits
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_UUID_CUTS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
_TEN = 1 << 24  # addresses that begin with 10, which nobody has on the Internet (RFC 1918)


def alphabet_of(known: Sequence[str]) -> bytes:
    """Return the characters to make texts of: digits or capital letters if known ones have them alone."""
    if known and all(one.isdigit() and one.isascii() for one in known):
        return _DIGITS
    return _UPPER if known and all(one.isupper() for one in known) else _LOWER


def made_up_texts(numbers: Integers, total: int, lengths: Integers, alphabet: bytes, seed: int) -> list[str]:
    """Return texts by their numbers among ``total``: a beginning that sorts, and letters by chance.

    Shapes: numbers, lengths (n,). They are as long as ``lengths``, or as it takes for all to be different.
    """
    digits = _digits(total, len(alphabet))
    lengths = np.clip(lengths, digits, _LONGEST)
    width = int(lengths.max(initial=1))
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
    """Return UUIDs by their numbers, which are in this order; by their form they are random ones."""
    raw = np.empty((len(numbers), 16), dtype=np.uint8)
    raw[:, :6] = _octets(_spread(numbers, total, 1 << 48), 6)
    raw[:, 6:9] = _octets((mixed(numbers, seed) >> np.uint64(40)).astype(np.int64), 3)
    raw[:, 9:] = _octets(numbers, 7)  # the number itself, so that no two are the same
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    whole = _hexadecimal(raw)
    starts = range(0, 32 * len(numbers), 32)
    return ["-".join(whole[at + low : at + high] for low, high in _UUID_CUTS) for at in starts]


def hexadecimal_bytes(numbers: Integers, total: int, lengths: Integers, seed: int) -> list[str]:
    """Return ``bytea`` as text, by numbers: such as texts, of ``lengths`` bytes."""
    texts = made_up_texts(numbers, total, lengths, _LOWER, seed)
    return [f"\\x{one.encode().hex()}" for one in texts]


def addresses(numbers: Integers, total: int) -> list[str]:
    """Return addresses in 10.0.0.0/8 by their numbers, and in IPv6's private fd00::/8 if there are more."""
    if total > _TEN:
        return [f"fd00::{one >> 32:x}:{one >> 16 & 0xFFFF:x}:{one & 0xFFFF:x}" for one in numbers.tolist()]
    spread = _spread(numbers, total, _TEN).tolist()
    return [f"10.{one >> 16}.{one >> 8 & 255}.{one & 255}" for one in spread]


def bytes_of(text: str, type_: str) -> int:
    """Return how long a known value of a type is."""
    length = (len(text) - 2) // 2 if type_ == "bytea" else len(text.encode())  # after \x, two digits each
    return min(_WIDEST_KNOWN, max(1, length))


def lengths_like(numbers: Integers, known: Sequence[int], usual: int, seed: int) -> Integers:
    """Return lengths by numbers: those that known values have, scaled so that the mean is ``usual``."""
    if not known:
        return np.full(len(numbers), max(1, usual), dtype=np.int64)
    drawn = np.array(known, dtype=np.float64)[(fractions(numbers, seed) * len(known)).astype(np.int64)]
    mean = max(1.0, float(np.mean(known)))
    most = max(_WIDEST_KNOWN, 4 * usual)
    return np.clip(np.round(drawn * (max(1, usual) / mean)), 1, most).astype(np.int64)


Maker = Callable[[Integers, int, Integers, int], list[str]]
"""Makes values of a type: numbers, how many there are, lengths, seed."""

MAKERS: dict[str, Maker] = {
    "uuid": lambda numbers, total, _, seed: uuids(numbers, total, seed),
    "bytea": hexadecimal_bytes,
    "inet": lambda numbers, total, _lengths, _seed: addresses(numbers, total),
    "cidr": lambda numbers, total, _lengths, _seed: addresses(numbers, total),
}
"""Of types other than texts."""


def _digits(total: int, base: int) -> int:
    digits = 1
    while base**digits < total:
        digits += 1
    return digits


def _spread(numbers: Integers, total: int, room: int) -> Integers:
    """Return numbers below ``total`` as such below ``room``, in the same order and as far apart."""
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
