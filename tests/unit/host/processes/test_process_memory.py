"""Mappings of a server's session under valgrind, recorded; and memory that is read from this process."""

from __future__ import annotations

import ctypes
import os

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.memory_mapping import MemoryMapping
from pgdyno.host.processes.process_memory import mappings_in, read_mappings, read_places

NO_PROCESS = 4_194_305  # above the kernel's largest number

MAPS = """\
00494000-009fc000 r-xp 00094000 fe:00 5358249                            /opt/pg sql/bin/postgres
00d64000-00da6000 rw-p 00000000 00:00 0
04b94000-0620a000 rw-s 00000000 00:01 1029                               /dev/zero (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def mapping(begin: int, end: int, rights: str, offset: int = 0, path: str = "") -> MemoryMapping:
    return MemoryMapping(begin, end, "w" in rights, "shared" in rights, offset, path)


def test_mappings_have_places_rights_and_files() -> None:
    assert list(mappings_in(MAPS)) == [
        mapping(0x494000, 0x9FC000, "", 0x94000, "/opt/pg sql/bin/postgres"),
        mapping(0xD64000, 0xDA6000, "w"),
        mapping(0x4B94000, 0x620A000, "w, shared", 0, "/dev/zero (deleted)"),
        mapping(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "", 0, "[vsyscall]"),
    ]


def test_a_process_is_read_where_it_has_memory() -> None:
    content = ctypes.create_string_buffer(b"buffers", 8)
    place = ctypes.addressof(content)
    found = read_places(Tree(), os.getpid(), (place, 0x10), 8).value
    assert found == {place: b"buffers\0"}
    mappings = read_mappings(Tree(), os.getpid()).value
    assert not isinstance(mappings, Unknown)
    assert [one.is_writable for one in mappings if one.has(place)] == [True]


def test_a_process_that_has_ended_has_neither() -> None:
    assert isinstance(read_mappings(Tree(), NO_PROCESS).value, Unknown)
    assert isinstance(read_places(Tree(), NO_PROCESS, (0x10,), 8).value, Unknown)
