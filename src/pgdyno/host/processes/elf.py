"""ELF reader for the code of a program file and the functions of a library.

Only the necessary part of the format is implemented. Programs have tens of megabytes, so only the headers and
the requested parts are read.

Source: System V Application Binary Interface, chapters 4 ("Object Files"), 5 ("Dynamic Linking") and the
AArch64 supplement; elf(5).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from io import SEEK_END
from typing import BinaryIO

from pgdyno.base.facts import Unknown

AARCH64 = 183  # EM_AARCH64

_64_BIT_LITTLE_ENDIAN = b"\x02\x01"  # ELFCLASS64, ELFDATA2LSB
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IN_THE_FILE, _EXECUTABLE = 1, 4  # SHT_PROGBITS, SHF_EXECINSTR
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
_SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED = 0  # SHN_UNDEF: the library imports such a symbol
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_LIMIT_BYTES = 64 << 20  # per symbol table; the largest libraries have a few megabytes


def read_code(file: BinaryIO, machine: int) -> bytes | Unknown:
    """Return the concatenated executable sections of a 64-bit program."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(b"\x7fELF"):
        return Unknown("not an ELF file")
    fields = _HEADER.unpack(head)
    if head[4:6] != _64_BIT_LITTLE_ENDIAN or fields[2] != machine:
        return Unknown("a program for a different processor")
    sections_at, entry_bytes, count = fields[6], fields[11], fields[12]
    if not count or entry_bytes != _SECTION.size:
        return Unknown("no list of sections")
    return _executable(file, sections_at, count)


def defined_functions(file: BinaryIO, names: Collection[str]) -> frozenset[str] | Unknown:
    """Return the functions among ``names`` that a 64-bit program or library exports."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or head[:6] != b"\x7fELF" + _64_BIT_LITTLE_ENDIAN:
        return Unknown("not a 64-bit ELF file")
    fields = _HEADER.unpack(head)
    sections_at, entry_bytes, count = fields[6], fields[11], fields[12]
    if entry_bytes != _SECTION.size:
        return Unknown("no list of sections")
    length = file.seek(0, SEEK_END)
    if sections_at + count * _SECTION.size > length:
        return Unknown("truncated file")
    file.seek(sections_at)
    sections = list(_SECTION.iter_unpack(file.read(count * _SECTION.size)))
    tables = [one for one in sections if one[1] == _DYNAMIC_SYMBOLS and one[6] < count]
    parts = [(one[4:6], sections[one[6]][4:6]) for one in tables]
    if any(offset + size > length for part in parts for offset, size in part):
        return Unknown("truncated file")
    if sum(symbols[1] + texts[1] for symbols, texts in parts) > min(length, _LIMIT_BYTES):
        return Unknown("overlapping or too large symbol tables")
    longest = max(map(len, names), default=0)
    found = (
        name
        for symbols, texts in parts
        for name in _functions(_part(file, *symbols), _part(file, *texts), longest)
    )
    return frozenset(found) & frozenset(names)


def _functions(symbols: bytes, texts: bytes, longest: int) -> Iterator[str]:
    """Yield the names of the functions defined in a symbol table, truncated after ``longest`` + 1 bytes."""
    whole = len(symbols) - len(symbols) % _SYMBOL.size
    for name, info, _other, section, _value, _size in _SYMBOL.iter_unpack(symbols[:whole]):
        if section != _UNDEFINED and info & 0xF in _FUNCTIONS:
            yield texts[name : name + longest + 1].partition(b"\0")[0].decode(errors="replace")


def _part(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _executable(file: BinaryIO, sections_at: int, count: int) -> bytes | Unknown:
    length = file.seek(0, SEEK_END)
    if sections_at + count * _SECTION.size > length:
        return Unknown("truncated file")
    file.seek(sections_at)
    code = []
    total = 0
    table = file.read(count * _SECTION.size)
    for _name, kind, flags, _address, offset, size, *_ in _SECTION.iter_unpack(table):
        if kind != _IN_THE_FILE or not flags & _EXECUTABLE:
            continue
        total += size
        if offset + size > length:
            return Unknown("truncated file")
        if total > length:
            return Unknown("overlapping sections")
        file.seek(offset)
        code.append(file.read(size))
    return b"".join(code) or Unknown("contains no code")
