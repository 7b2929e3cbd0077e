"""Addresses of a session under valgrind and the structures there, in a memory that is made by hand."""

from __future__ import annotations

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.memory_mapping import MemoryMapping, SharedArea, SharedMemory
from pgdyno.profile.misses.structures import (
    CONSTANTS,
    DYNAMIC,
    OTHER,
    OWN,
    SHARED,
    STACK,
    Blocks,
    structures_in,
)

POSTGRES = "/usr/bin/postgres"
PROGRAM = MemoryMapping(0x400000, 0x500000, is_writable=False, is_shared=False, path=POSTGRES)
VARIABLES = MemoryMapping(0x500000, 0x510000, is_writable=True, is_shared=False, path=POSTGRES)
BEHIND = MemoryMapping(0x510000, 0x520000, is_writable=True, is_shared=False)
LD_SO = MemoryMapping(0x4033000, 0x4035000, is_writable=True, is_shared=False, path="/usr/lib/ld-linux.so.2")
HEAP = MemoryMapping(0x4035000, 0x4188000, is_writable=True, is_shared=False)
MAIN = MemoryMapping(0x5000000, 0x6000000, is_writable=True, is_shared=True, path="/dev/zero (deleted)")
STATISTICS = MemoryMapping(
    0x6000000, 0x6100000, is_writable=True, is_shared=True, path="/dev/shm/PostgreSQL.1"
)
CHUNK = MemoryMapping(0x6100000, 0x6121000, is_writable=True, is_shared=False)
LOCALE = MemoryMapping(0x7000000, 0x7001000, is_writable=False, is_shared=True, path="/usr/lib/gconv.cache")
BUFFER = MemoryMapping(0x7001000, 0x7003000, is_writable=True, is_shared=False)
STACKED = MemoryMapping(0x1FFEFF9000, 0x1FFF001000, is_writable=True, is_shared=False)
MAPPINGS = (PROGRAM, VARIABLES, BEHIND, LD_SO, HEAP, MAIN, STATISTICS, CHUNK, LOCALE, BUFFER, STACKED)
AREAS = (
    SharedArea("Buffer Descriptors", 0x10000, 0x1000, 0x1000),
    # Four pages of 8 kB, and half a page to align them: from 0x5012000 on, as 0x11100 is rounded up to it.
    SharedArea("Buffer Blocks", 0x11100, 4 * 8192 + 4096, 4 * 8192 + 4096),
    SharedArea("LOCK hash", 0x20000, 2896, 2944),
    SharedArea("AioCtl", 0x40000, 56, 128),
)


@pytest.mark.parametrize(
    ("address", "structure"),
    [
        (0x400000, CONSTANTS),
        (0x500000, CONSTANTS),
        (0x51FFFF, CONSTANTS),  # right behind the program's file: variables that begin as zero
        (0x4034FFF, CONSTANTS),
        (0x4035000, OWN),  # the heap, which valgrind puts behind ld.so
        (0x6100000, OWN),  # behind shared memory, where there is room first
        (0x7001000, OWN),  # behind a file that is read alone
        (0x1FFEFFF788, STACK),
        (0x6000040, DYNAMIC),
        (0x7000000, CONSTANTS),
        (0x7003000, OTHER),
        (0x100, OTHER),
        (0x5000040, "main LWLocks"),
        (0x5010FFF, "buffer descriptors"),
        (0x5020000, "lock tables"),
        (0x503FFFF, "lock tables"),  # without a name, behind the head of the hash table
        (0x5040000, "shared memory: AioCtl"),
        (0x5040080, SHARED),
    ],
)
def test_an_address_has_a_structure(address: int, structure: str) -> None:
    assert structures_in(MAPPINGS, SharedMemory(AREAS, 8192), POSTGRES).of(address) == structure


def test_pages_of_shared_buffers_are_aligned_where_they_have_room_for_it() -> None:
    blocks = structures_in(MAPPINGS, SharedMemory(AREAS, 8192), POSTGRES).blocks
    assert isinstance(blocks, Blocks)
    assert blocks.page_of(0x5012000) == 0x5012000
    assert blocks.page_of(0x5013FFF) == 0x5012000
    assert blocks.page_of(0x5012000 + 3 * 8192 + 77) == 0x5012000 + 3 * 8192
    assert blocks.page_of(0x5012000 + 4 * 8192) is None
    assert blocks.page_of(0x5011100) is None


def test_before_version_16_pages_begin_with_their_area() -> None:
    areas = (SharedArea("Buffer Blocks", 0x11100, 4 * 8192, 4 * 8192),)
    blocks = structures_in(MAPPINGS, SharedMemory(areas, 8192), POSTGRES).blocks
    assert isinstance(blocks, Blocks)
    assert blocks.page_of(0x5011100 + 8192 + 5) == 0x5011100 + 8192


def test_of_pages_below_8_kb_the_places_are_not_told() -> None:
    # Four pages of 4 kB, and 4 kB to align them, which could be a fifth one.
    areas = (SharedArea("Buffer Blocks", 0x11100, 5 * 4096, 5 * 4096),)
    found = structures_in(MAPPINGS, SharedMemory(areas, 4096), POSTGRES)
    assert found.blocks == Unknown(
        "kinds of pages are identified from 8\xa0kB on, and this server's have 4\xa0kB"
    )
    assert found.of(0x5012000) == "pages in shared buffers"


def test_without_an_index_shared_memory_is_one_structure() -> None:
    found = structures_in(MAPPINGS, SharedMemory((), 8192), POSTGRES)
    assert found.of(0x5012000) == SHARED
    assert isinstance(found.blocks, Unknown)
    assert "needs PostgreSQL 13 or later" in found.blocks.reason


def test_without_shared_memory_all_else_is_told() -> None:
    found = structures_in((PROGRAM, HEAP, STACKED), SharedMemory(AREAS, 8192), POSTGRES)
    assert found.of(0x5012000) == OTHER
    assert found.of(0x4035000) == OWN
