"""The kind of a page of data, by its own head and end.

Source: src/include/storage/bufpage.h (the head), and the structures at the end of pages of indexes. Their two
last bytes tell them apart, as in pg_filedump: a B-tree's are below those of the others on purpose (nbtree.h).
"""

from __future__ import annotations

import struct

TABLE = "table pages"
BTREE = "B-tree pages"
OTHER_INDEX = "pages of other indexes"
MAP = "free space, visibility maps"
UNKNOWN_PAGE = "pages of unknown kind"

_HEAD = struct.Struct("<QHHHHHHI")  # pd_lsn, checksum, flags, lower, upper, special, size and version, xid
_SIZE_BITS = 0xFF00
_BTREE_BYTES = 16
_LARGEST_BTREE_CYCLE = 0xFF7F  # MAX_BT_CYCLE_ID


def page_kind(page: bytes) -> str:
    """Return the kind of a page of a little-endian server."""
    _, _, _, lower, _, special, size_version, _ = _HEAD.unpack_from(page)
    if size_version & _SIZE_BITS != len(page) & _SIZE_BITS or not _HEAD.size <= special <= len(page):
        return UNKNOWN_PAGE
    if special == len(page):  # of tables and of maps, of which only rows have pointers
        return TABLE if lower > _HEAD.size else MAP
    is_btree = len(page) - special == _BTREE_BYTES and _last(page) <= _LARGEST_BTREE_CYCLE
    return BTREE if is_btree else OTHER_INDEX


def _last(page: bytes) -> int:
    return int.from_bytes(page[-2:], "little")
