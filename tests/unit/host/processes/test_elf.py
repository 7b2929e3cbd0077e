"""ELF files that are made by hand, field by field as in elf(5), and real ones.

What a file claims is checked against its length.
"""

from __future__ import annotations

import platform
import struct
import sys
from io import BytesIO
from pathlib import Path

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.elf import (
    AARCH64,
    CodeSegment,
    defined_functions,
    machine_of,
    read_code,
    read_code_segments,
)

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ").pack(1, 2, 0, 1, 0, 0)  # a function, whose name is at 1
READ, EXECUTE = 4, 1
LOAD, NOTE = 1, 4


def program(sections: list[bytes], content: bytes = b"", sections_at: int | None = None) -> BytesIO:
    """Return a file with a header, this content from byte 64 on, and these sections."""
    at = HEADER.size + len(content) if sections_at is None else sections_at
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = HEADER.pack(ident, 3, AARCH64, 1, 0, 0, at, 0, 64, 0, 0, SECTION.size, len(sections), 0)
    return BytesIO(head + content + b"".join(sections))


def section(kind: int, offset: int, size: int, *, link: int = 0) -> bytes:
    return SECTION.pack(0, kind, 4, 0, offset, size, link, 0, 0, 0)


def in_segments(
    *parts: tuple[int, int, int, int, int], ident: bytes = b"\x7fELF\x02\x01\x01", length: int = 4096
) -> bytes:
    """Return a file with these parts: kind, flags, offset, address, size."""
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, len(parts), 0, 0, 0)
    table = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, 4096)
        for kind, flags, offset, address, size in parts
    )
    return (header + table).ljust(length, b"\0")


def test_the_name_of_a_function_ends_at_its_nul_byte_and_longer_names_are_others() -> None:
    for texts, names in ((b"\0malloc\0", ["malloc"]), (b"\0mallocx\0", []), (b"\0malloc", ["malloc"])):
        tables = [section(11, 64, 24, link=1), section(3, 88, len(texts))]
        found = defined_functions(program(tables, SYMBOL + texts), {"malloc", "free"})
        assert not isinstance(found, Unknown)
        assert sorted(found) == names


@pytest.mark.parametrize("huge", [1 << 63, (1 << 64) - 1])
def test_places_beyond_the_end_of_the_file_are_not_looked_up(huge: int) -> None:
    for file in (
        program([section(11, 0, 24)], sections_at=huge),
        program([section(11, huge, 24)]),
        program([section(11, 0, huge)]),
    ):
        assert defined_functions(file, {"malloc"}) == Unknown("truncated file")


def test_code_that_is_listed_many_times_is_not_read_many_times() -> None:
    assert read_code(program([section(1, 0, 100)] * 50), AARCH64) == Unknown("overlapping sections")


def test_symbols_that_are_listed_many_times_are_not_read_many_times() -> None:
    many = program([section(11, 0, 100, link=0)] * 50)
    assert defined_functions(many, {"malloc"}) == Unknown("overlapping or too large symbol tables")


def test_a_file_without_sections_exports_nothing_that_is_known() -> None:
    assert defined_functions(program([]), {"malloc"}) == Unknown("no list of sections")


def test_parts_that_are_loaded_to_be_executed_are_found_in_order() -> None:
    file = in_segments(
        (LOAD, READ | EXECUTE, 0x800, 0x600800, 0x100),
        (LOAD, READ, 0, 0x400000, 0x200),
        (LOAD, READ | EXECUTE, 0x200, 0x401200, 0x400),
        (NOTE, READ | EXECUTE, 0, 0, 0x10),
    )
    assert read_code_segments(BytesIO(file)) == (
        CodeSegment(0x401200, 0x200, 0x400),
        CodeSegment(0x600800, 0x800, 0x100),
    )


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"#!/bin/sh\n", "not a 64-bit little-endian ELF file"),
        (in_segments(ident=b"\x7fELF\x01\x01\x01"), "not a 64-bit little-endian ELF file"),
        (in_segments((LOAD, EXECUTE, 0, 0, 16))[:100], "truncated file"),
        (in_segments(), "no list of segments"),
        (in_segments((LOAD, EXECUTE, 4000, 0, 200)), "truncated file"),
        (in_segments((LOAD, READ, 0, 0, 200)), "contains no code"),
    ],
)
def test_files_without_code_are_said(file: bytes, reason: str) -> None:
    assert read_code_segments(BytesIO(file)) == Unknown(reason)


HEAD = b"\x7fELF\x02\x01" + bytes(10)  # e_ident; e_type is the next two bytes
REST = bytes(44)
ARM = HEAD + b"\x03\x00\xb7\x00" + REST  # as file(1) shows one of Debian's arm64


def test_programs_name_their_machine() -> None:
    assert machine_of(BytesIO(ARM)) == "aarch64"
    assert machine_of(BytesIO(HEAD + b"\x03\x00\x3e\x00" + REST)) == "x86_64"
    with Path(sys.executable).resolve().open("rb") as file:
        assert machine_of(file) == platform.machine()


@pytest.mark.parametrize(
    "file", [b"", b"#!/bin/sh\necho postgres\n" * 4, ARM[:-1], HEAD + b"\x03\x00\xf3\x00" + REST]
)
def test_the_machine_of_other_files_is_unknown(file: bytes) -> None:
    assert machine_of(BytesIO(file)) == ""
