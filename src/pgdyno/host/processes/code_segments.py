"""The segments of an executable file that are mapped for execution.

Source: System V Application Binary Interface, chapter 5 ("Program Header"); elf(5).
"""

from __future__ import annotations

import struct
from io import SEEK_END
from typing import BinaryIO

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.code_segment import CodeSegment

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_64_BIT_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_LOADED, _EXECUTABLE = 1, 1  # PT_LOAD, PF_X


def read_code_segments(file: BinaryIO) -> tuple[CodeSegment, ...] | Unknown:
    """Return the executable segments of a 64-bit program, in order of their addresses."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(_64_BIT_LITTLE_ENDIAN):
        return Unknown("not a 64-bit ELF file")
    fields = _HEADER.unpack(head)
    at, entry_bytes, count = fields[5], fields[9], fields[10]
    length = file.seek(0, SEEK_END)
    if entry_bytes != _PROGRAM_HEADER.size or at + count * entry_bytes > length:
        return Unknown("no list of segments")
    file.seek(at)
    found = []
    for kind, flags, offset, address, _, size, *_ in _PROGRAM_HEADER.iter_unpack(
        file.read(count * entry_bytes)
    ):
        if kind == _LOADED and flags & _EXECUTABLE and size:
            if offset + size > length:
                return Unknown("truncated file")
            found.append(CodeSegment(address, offset, size))
    return tuple(sorted(found, key=lambda one: one.address)) or Unknown("contains no code")
