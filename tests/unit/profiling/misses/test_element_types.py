"""Elements of arrays, from gdb's words."""

from __future__ import annotations

import pytest

from pgdyno.model.profiles.element_layout import ElementLayout
from pgdyno.profiling.misses.element_types import ELEMENT_TYPES, parse_elements

# Recorded: gdb 13.1 on a program that includes the headers of PostgreSQL 18 (x86-64), compiled by gcc 12 -g.
RECORDED = """\
type 64 4 BufferDesc
type = struct BufferDesc {
/*      0      |      20 */    BufferTag tag;
/*     20      |       4 */    int buf_id;
/*     24      |       4 */    pg_atomic_uint32 state;
/*     28      |       4 */    int wait_backend_pgprocno;
/*     32      |       4 */    int freeNext;
/*     36      |      12 */    PgAioWaitRef io_wref;
/*     48      |      16 */    LWLock content_lock;

                               /* total size (bytes):   64 */
                             }
type 64 4 BufferDescPadded
type = union BufferDescPadded {
/*                    64 */    BufferDesc bufferdesc;
/*                    64 */    char pad[64];

                               /* total size (bytes):   64 */
                             }
type 16 8 HASHELEMENT
type = struct HASHELEMENT {
/*      0      |       8 */    struct HASHELEMENT *link;
/*      8      |       4 */    uint32 hashvalue;
/* XXX  4-byte padding   */

                               /* total size (bytes):   16 */
                             }
type 24 4 BufferLookupEnt
type = struct {
/*      0      |      20 */    BufferTag key;
/*     20      |       4 */    int id;

                               /* total size (bytes):   24 */
                             }
type 16 4 LWLock
type = struct LWLock {
/*      0      |       2 */    uint16 tranche;
/* XXX  2-byte hole      */
/*      4      |       4 */    pg_atomic_uint32 state;
/*      8      |       8 */    proclist_head waiters;

                               /* total size (bytes):   16 */
                             }
type 128 4 LWLockPadded
type = union LWLockPadded {
/*                    16 */    LWLock lock;
/*                   128 */    char pad[128];

                               /* total size (bytes):  128 */
                             }
"""


def test_elements_of_postgresql_18_are_those_of_its_headers() -> None:
    assert parse_elements(RECORDED, 64) == (
        # BUFFERDESC_PAD_TO_SIZE is 64, and nothing of it is free any more in version 18.
        ElementLayout("buffer descriptors", ("BufferDesc",), 64, 4, 0, 64, 1, 1),
        # dynahash: MAXALIGN(sizeof(HASHELEMENT)) + MAXALIGN(entry): 16 + 24; the head has 4 bytes of padding.
        ElementLayout("buffer lookup table", ("HASHELEMENT", "BufferLookupEnt"), 40, 8, 4, 64, 1, 2),
        # LWLOCK_PADDED_SIZE is 128, of which the lock's members take 14.
        ElementLayout("main LWLocks", ("LWLock",), 128, 4, 114, 64, 2, 2),
    )


@pytest.mark.parametrize(
    ("proclock_bytes", "element_bytes", "fewest", "most", "shares"),
    [
        (64, 80, 2, 2, True),  # 80: from 0, 16, 32 and 48 of a line to 80, 96, 112 and 128
        (48, 64, 1, 1, False),
        (41, 64, 1, 1, False),  # an entry takes whole words of 8
        (30, 48, 1, 2, True),
        (150, 168, 3, 4, True),  # from 0 to 168: three; from 40 to 208: four
    ],
)
def test_lines_follow_from_where_elements_begin(
    proclock_bytes: int, element_bytes: int, fewest: int, most: int, *, shares: bool
) -> None:
    words = f"type 16 8 HASHELEMENT\ntype = struct HASHELEMENT {{\ntype {proclock_bytes} 8 PROCLOCK\n"
    [found] = parse_elements(words, 64)
    assert (found.structure, found.element_bytes) == ("lock tables", element_bytes)
    assert (found.fewest_lines, found.most_lines, found.shares_lines) == (fewest, most, shares)


def test_lines_of_twice_the_size_are_shared_by_two_buffer_descriptors() -> None:
    descriptors, _, locks = parse_elements(RECORDED, 128)
    assert (descriptors.shares_lines, descriptors.most_lines) == (True, 1)
    assert not locks.shares_lines


def test_without_one_of_its_types_an_element_is_left_out() -> None:
    assert parse_elements("", 64) == ()
    assert parse_elements("type 24 4 BufferLookupEnt\ntype = struct {\n", 64) == ()
    assert {"BufferDescPadded", "PGPROC"} <= {*ELEMENT_TYPES}
