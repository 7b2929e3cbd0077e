"""The code in a program's file: as much of the ELF format as it takes to find it.

Programs have tens of megabytes, so that only the headers and the code itself are read.

Source: System V Application Binary Interface, chapters 4 ("Object Files") and the AArch64 supplement; elf(5).
"""

from __future__ import annotations

import struct
from io import SEEK_END
from typing import BinaryIO

from pgdyno.model.facts import Unknown

AARCH64 = 183  # EM_AARCH64

_64_BIT_LITTLE_ENDIAN = b"\x02\x01"  # ELFCLASS64, ELFDATA2LSB
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IN_THE_FILE, _EXECUTABLE = 1, 4  # SHT_PROGBITS, SHF_EXECINSTR


def read_code(file: BinaryIO, machine: int) -> bytes | Unknown:
    """Return the executable sections of a 64-bit program, one after the other."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(b"\x7fELF"):
        return Unknown("not an ELF file")
    fields = _HEADER.unpack(head)
    if head[4:6] != _64_BIT_LITTLE_ENDIAN or fields[2] != machine:
        return Unknown("a program for another processor")
    sections_at, entry_bytes, count = fields[6], fields[11], fields[12]
    if not count or entry_bytes != _SECTION.size:
        return Unknown("its sections are not listed")
    return _executable(file, sections_at, count)


def _executable(file: BinaryIO, sections_at: int, count: int) -> bytes | Unknown:
    length = file.seek(0, SEEK_END)
    if sections_at + count * _SECTION.size > length:
        return Unknown("cut short")
    file.seek(sections_at)
    code = []
    table = file.read(count * _SECTION.size)
    for _name, kind, flags, _address, offset, size, *_ in _SECTION.iter_unpack(table):
        if kind != _IN_THE_FILE or not flags & _EXECUTABLE:
            continue
        if offset + size > length:
            return Unknown("cut short")
        file.seek(offset)
        code.append(file.read(size))
    return b"".join(code) or Unknown("it has no code")
