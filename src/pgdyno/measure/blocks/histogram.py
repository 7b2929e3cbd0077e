"""Latency histograms with the buckets of an HdrHistogram: 3 significant digits, exact merging.

Each value up to 2047 has its own bucket; above, every doubling has 1024 buckets. So the width of a bucket is
at most 1/1024 of its values. Its middle is at most 1/2048 off: the relative error of all results computed
here. Buckets are numbered as in Gil Tene's HdrHistogram (lowest discernible value 1).

The text format is HdrHistogram's V2: ZigZag LEB128 counts, deflated, base64 ("HISTFAAA…").

HdrHistogram's libraries read it (Java ``decodeFromCompressedByteBuffer``, Python ``HdrHistogram.decode``, …).
Reference: github.com/HdrHistogram/HdrHistogram, AbstractHistogram.java, ``encodeIntoByteBuffer``.

    4 bytes  0x1c849314          4 bytes  length of what follows, deflated by zlib:
    4 bytes  0x1c849313          4 bytes  length of the counts      4 bytes  0 (offset)
    4 bytes  3 (digits)          8 bytes  1 (lowest)                8 bytes  highest value
    8 bytes  1.0 (ratio)         counts from bucket 0 on, each ZigZag LEB128; -n stands for n zeros
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HALF = 1024
"""Buckets per doubling: the smallest power of two that gives 3 significant digits."""
_EXACT_BITS = 11  # each value below 2 ** 11 has its own bucket
_TAIL_ONE_IN = 20  # the slowest 5 %, as in attribution.py


@dataclass(frozen=True, eq=False)
class Histogram:
    """The number of values in each non-empty bucket.

    Shapes: indexes, counts (buckets,), int64; indexes ascend, counts are above 0.
    """

    indexes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Histogram:
        """Return the histogram of values, none below 0.

        Shapes: values (n,).
        """
        _, exponents = np.frexp(np.maximum(values, 2 * HALF - 1).astype(np.float64))
        doublings = exponents.astype(np.int64) - _EXACT_BITS
        return cls(*np.unique(doublings * HALF + (values >> doublings), return_counts=True))

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """Return the histogram of the values of all histograms."""
        parts = list(histograms)
        nothing = np.empty(0, dtype=np.int64)
        indexes, where = np.unique(
            np.concatenate([nothing, *(part.indexes for part in parts)]), return_inverse=True
        )
        counts = np.zeros(indexes.size, dtype=np.int64)
        np.add.at(counts, where, np.concatenate([nothing, *(part.counts for part in parts)]))
        return cls(indexes, counts)

    @property
    def count(self) -> int:
        """The number of values."""
        return int(self.counts.sum())

    @property
    def lowest(self) -> NDArray[np.int64]:
        """The smallest value of each bucket. Shapes: (buckets,)."""
        return (self.indexes - self._doublings * HALF) << self._doublings

    @property
    def middles(self) -> NDArray[np.float64]:
        """The mean of the integers in each bucket. Shapes: (buckets,)."""
        return self.lowest + ((1 << self._doublings) - 1) / 2

    @property
    def _doublings(self) -> NDArray[np.int64]:
        return np.maximum(self.indexes // HALF - 1, 0)

    def quantile(self, share: float) -> float:
        """Return a quantile, interpolated linearly between two values; at least one value is required.

        It is numpy's "linear" quantile (Hyndman and Fan's type 7), as for the percentiles of blocks.
        """
        position = share * (self.count - 1)
        ranks = np.array([np.floor(position), np.ceil(position)])
        low, high = self.middles[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return float(low + (high - low) * (position - ranks[0]))

    def tail_mean(self) -> float:
        """Return the mean of the slowest 5 %, as ``tail_mean`` does; at least one value is required."""
        size = self.count / _TAIL_ONE_IN
        slower = np.cumsum(self.counts[::-1])[::-1] - self.counts
        taken = np.clip(size - slower, 0, self.counts)
        return float((taken * self.middles).sum() / size)


_OUTER, _INNER = 0x1C849314, 0x1C849313
_HEAD = struct.Struct(">iiiiqqd")
_DIGITS, _LOWEST = 3, 1
_MOST_BUCKETS = 54 * HALF  # for 63-bit values
_MOST_BYTES = _HEAD.size + 10 * _MOST_BUCKETS


def encode(histogram: Histogram) -> str:
    """Return the text of a histogram."""
    counts = bytearray()
    following = 0
    for index, count in zip(histogram.indexes.tolist(), histogram.counts.tolist(), strict=True):
        if index > following:
            counts += _leb128(-(index - following))
        counts += _leb128(count)
        following = index + 1
    highest = max(2, int(histogram.lowest[-1])) if histogram.indexes.size else 2
    body = zlib.compress(_HEAD.pack(_INNER, len(counts), 0, _DIGITS, _LOWEST, highest, 1.0) + counts)
    return base64.b64encode(struct.pack(">ii", _OUTER, len(body)) + body).decode()


def decode(text: str) -> Histogram:
    """Return the histogram encoded in a text.

    Raises: ValueError, with the defect, for an invalid text.
    """
    try:
        content = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", content)
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(content[8:], _MOST_BYTES)
        _, size, offset, digits, lowest, _, ratio = head = _HEAD.unpack_from(body)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HdrHistogram: {error}") from error
    if (cookie, head[0]) != (_OUTER, _INNER) or length != len(content) - 8 or not unpacker.eof:
        raise ValueError("not a complete HdrHistogram of version 2")
    if (digits, lowest, offset, ratio) != (_DIGITS, _LOWEST, 0, 1.0):
        raise ValueError("its values are not integers with 3 significant digits")
    counts = body[_HEAD.size :]
    if size != len(counts):
        raise ValueError("not a complete HdrHistogram of version 2")
    indexes, found, following = [], [], 0
    for number in _numbers(counts):
        if number > 0:
            indexes.append(following)
            found.append(number)
        following += 1 if number >= 0 else -number
        if following > _MOST_BUCKETS or number >= 1 << 53:
            raise ValueError("its counts are too large")
    return Histogram(np.array(indexes, dtype=np.int64), np.array(found, dtype=np.int64))


def _leb128(number: int) -> bytes:
    """Encode an integer as ZigZag LEB128: 7 bits per byte, lowest first; the lowest bit is the sign."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    done = bytearray()
    while rest > 0x7F:
        done.append(rest & 0x7F | 0x80)
        rest >>= 7
    done.append(rest)
    return bytes(done)


def _numbers(content: bytes) -> Iterator[int]:
    """Yield ZigZag LEB128 integers. As in HdrHistogram, a ninth byte is the last and has 8 bits."""
    rest = shift = 0
    for byte in content:
        is_last = shift == 56 or byte < 0x80
        rest |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if is_last:
            yield -((rest + 1) >> 1) if rest & 1 else rest >> 1
            rest = shift = 0
    if shift:
        raise ValueError("its last count is truncated")
