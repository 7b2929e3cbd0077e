"""The executable parts of ELF files that are made by hand, field by field as in elf(5)."""

from __future__ import annotations

import io
import struct

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.code_segment import CodeSegment
from pgdyno.host.processes.code_segments import read_code_segments

READ, EXECUTE = 4, 1
LOAD, NOTE = 1, 4


def elf(
    *parts: tuple[int, int, int, int, int], ident: bytes = b"\x7fELF\x02\x01\x01", length: int = 4096
) -> bytes:
    """Return a file with these parts: kind, flags, offset, address, size."""
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 64, 0, 0, 64, 56, len(parts), 0, 0, 0)
    table = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, 4096)
        for kind, flags, offset, address, size in parts
    )
    return (header + table).ljust(length, b"\0")


def test_parts_that_are_loaded_to_be_executed_are_found_in_order() -> None:
    file = elf(
        (LOAD, READ | EXECUTE, 0x800, 0x600800, 0x100),
        (LOAD, READ, 0, 0x400000, 0x200),
        (LOAD, READ | EXECUTE, 0x200, 0x401200, 0x400),
        (NOTE, READ | EXECUTE, 0, 0, 0x10),
    )
    assert read_code_segments(io.BytesIO(file)) == (
        CodeSegment(0x401200, 0x200, 0x400),
        CodeSegment(0x600800, 0x800, 0x100),
    )


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"#!/bin/sh\n", "not a 64-bit ELF file"),
        (elf(ident=b"\x7fELF\x01\x01\x01"), "not a 64-bit ELF file"),
        (elf((LOAD, EXECUTE, 0, 0, 16))[:100], "no list of segments"),
        (elf((LOAD, EXECUTE, 4000, 0, 200)), "truncated file"),
        (elf((LOAD, READ, 0, 0, 200)), "contains no code"),
    ],
)
def test_files_without_code_are_said(file: bytes, reason: str) -> None:
    assert read_code_segments(io.BytesIO(file)) == Unknown(reason)
