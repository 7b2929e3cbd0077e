"""Kinds of tally, made by hand as bufpage.h has them."""

from __future__ import annotations

import struct

import pytest

from pgdyno.profile.misses import tally
from pgdyno.profile.misses.tally import page_kind

SIZE, VERSION = 8192, 4


def page(lower: int, special: int, end: bytes = b"", size: int = SIZE) -> bytes:
    head = struct.pack("<QHHHHHHI", 1, 0, 0, lower, special, special, size | VERSION, 0)
    return head.ljust(size - len(end), b"\0") + end


def special(length: int, last: int) -> tuple[int, bytes]:
    """Return where the end of a page begins, and its content; ``last`` tells kinds of indexes apart."""
    return SIZE - length, b"\0" * (length - 2) + struct.pack("<H", last)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (page(24 + 4, SIZE), tally.TABLE),
        (page(24, SIZE), tally.MAP),
        (page(40, *special(16, 0)), tally.BTREE),
        (page(40, *special(16, 0xFF7F)), tally.BTREE),  # the largest cycle of a vacuum
        (page(40, *special(16, 0xFF80)), tally.OTHER_INDEX),  # hash
        (page(40, *special(16, 0xFF81)), tally.OTHER_INDEX),  # GiST
        (page(40, *special(8, 0x0002)), tally.OTHER_INDEX),  # GIN
        (page(28, 16384, size=16384), tally.TABLE),
        (b"\0" * SIZE, tally.UNKNOWN_PAGE),
        (page(28, SIZE - 1024, size=SIZE * 2)[:SIZE], tally.UNKNOWN_PAGE),  # of a server with other pages
        (page(28, 4), tally.UNKNOWN_PAGE),
    ],
)
def test_a_page_tells_its_kind(content: bytes, kind: str) -> None:
    assert page_kind(content) == kind
