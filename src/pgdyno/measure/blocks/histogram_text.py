"""Histograms in HdrHistogram's own text format.

V2 with ZigZag LEB128 counts, deflated, base64 ("HISTFAAA…").

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
from collections.abc import Iterator

import numpy as np

from pgdyno.measure.blocks.histogram import HALF, Histogram

_OUTER, _INNER = 0x1C849314, 0x1C849313
_HEAD = struct.Struct(">iiiiqqd")
_DIGITS, _LOWEST = 3, 1
_MOST_BUCKETS = 54 * HALF  # of values of 63 bits
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

    Raises: ValueError saying what is wrong with it.
    """
    try:
        content = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", content)
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(content[8:], _MOST_BYTES)
        _, size, offset, digits, lowest, _, ratio = head = _HEAD.unpack_from(body)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"it is no HdrHistogram: {error}") from error
    if (cookie, head[0]) != (_OUTER, _INNER) or length != len(content) - 8 or not unpacker.eof:
        raise ValueError("it is no whole HdrHistogram of version 2")
    if (digits, lowest, offset, ratio) != (_DIGITS, _LOWEST, 0, 1.0):
        raise ValueError("its values are not whole numbers with 3 significant digits")
    counts = body[_HEAD.size :]
    if size != len(counts):
        raise ValueError("it is no whole HdrHistogram of version 2")
    indexes, found, following = [], [], 0
    for number in _numbers(counts):
        if number > 0:
            indexes.append(following)
            found.append(number)
        following += 1 if number >= 0 else -number
        if following > _MOST_BUCKETS or number >= 1 << 53:
            raise ValueError("it has more than can be counted")
    return Histogram(np.array(indexes, dtype=np.int64), np.array(found, dtype=np.int64))


def _leb128(number: int) -> bytes:
    """Return a whole number by 7 bits a byte, the lowest first; its sign is the lowest bit (ZigZag)."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    done = bytearray()
    while rest > 0x7F:
        done.append(rest & 0x7F | 0x80)
        rest >>= 7
    done.append(rest)
    return bytes(done)


def _numbers(content: bytes) -> Iterator[int]:
    """Yield whole numbers. The ninth byte of one ends it, with all 8 bits: the form is HdrHistogram's own."""
    rest = shift = 0
    for byte in content:
        is_last = shift == 56 or byte < 0x80
        rest |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if is_last:
            yield -((rest + 1) >> 1) if rest & 1 else rest >> 1
            rest = shift = 0
    if shift:
        raise ValueError("its last count is cut off")
