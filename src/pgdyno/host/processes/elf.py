"""ELF reader: the machine, the code and the code segments of a program, and the functions of a library.

Only the necessary part of the format is implemented. Programs have tens of megabytes, so only the headers and
the requested parts are read.

Source: System V Application Binary Interface, chapters 4 ("Object Files"), 5 ("Program Header", "Dynamic
Linking") and the supplements of both machines; elf(5).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from io import SEEK_END
from typing import Any, BinaryIO, NamedTuple

from pgdyno.base.facts import Unknown

AARCH64 = 183  # EM_AARCH64
_MACHINES = {62: "x86_64", AARCH64: "aarch64"}  # EM_X86_64

_BEGINNING = b"\x7fELF\x02\x01"  # ELFCLASS64, ELFDATA2LSB
_HEADER = struct.Struct("<18xH12xQQ6xHHHH2x")
_PAGE_BYTES = 4096
_SEGMENT, _SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_LOADED, _EXECUTABLE = 1, 1  # PT_LOAD, PF_X
_IN_THE_FILE, _INSTRUCTIONS = 1, 4  # SHT_PROGBITS, SHF_EXECINSTR
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
_SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED = 0  # SHN_UNDEF: the library imports such a symbol
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_LIMIT_BYTES = 64 << 20  # per symbol table; the largest libraries have a few megabytes
_NO_ELF = Unknown("not a 64-bit little-endian ELF file")
_TRUNCATED = Unknown("truncated file")


@dataclass(frozen=True)
class CodeSegment:
    """A part mapped for execution: its address before relocation, its offset in the file, and its size."""

    address: int
    offset: int
    size: int

    def has(self, address: int) -> bool:
        """Whether an address is in it."""
        return self.address <= address < self.address + self.size

    @property
    def pages(self) -> range:
        """Numbers of its 4 kB pages."""
        return range(self.address // _PAGE_BYTES, (self.address + self.size - 1) // _PAGE_BYTES + 1)

    def address_of(self, offset: int) -> int | None:
        """Return the address of a file offset; None if it is outside this segment."""
        inside = self.offset <= offset < self.offset + self.size
        return self.address + offset - self.offset if inside else None


class _Header(NamedTuple):
    machine: int
    segments_at: int
    sections_at: int
    segment_bytes: int
    segments: int
    section_bytes: int
    sections: int


def machine_of(file: BinaryIO) -> str:
    """Return the machine of a program, named as by ``uname -m``; empty if unknown."""
    header = _header(file)
    return "" if header is None else _MACHINES.get(header.machine, "")


def read_code(file: BinaryIO, machine: int) -> bytes | Unknown:
    """Return the concatenated executable sections of a program."""
    header = _header(file)
    if header is None:
        return _NO_ELF
    if header.machine != machine:
        return Unknown("a program for a different processor")
    sections = _sections(file, header)
    if isinstance(sections, Unknown):
        return sections
    parts = [one[4:6] for one in sections if one[1] == _IN_THE_FILE and one[2] & _INSTRUCTIONS]
    if not _are_within(file, parts):
        return _TRUNCATED
    if sum(size for _, size in parts) > _length(file):
        return Unknown("overlapping sections")
    return b"".join(_part(file, *part) for part in parts) or Unknown("contains no code")


def read_code_segments(file: BinaryIO) -> tuple[CodeSegment, ...] | Unknown:
    """Return the segments of a program that are mapped for execution, in order of their addresses."""
    header = _header(file)
    if header is None:
        return _NO_ELF
    segments = _table(
        file, _SEGMENT, header.segments_at, header.segment_bytes, header.segments, "no list of segments"
    )
    if isinstance(segments, Unknown):
        return segments
    found = [
        CodeSegment(address, offset, size)
        for kind, flags, offset, address, _, size, *_ in segments
        if kind == _LOADED and flags & _EXECUTABLE and size
    ]
    if not _are_within(file, ((one.offset, one.size) for one in found)):
        return _TRUNCATED
    return tuple(sorted(found, key=lambda one: one.address)) or Unknown("contains no code")


def defined_functions(file: BinaryIO, names: Collection[str]) -> frozenset[str] | Unknown:
    """Return the functions among ``names`` that a program or library exports."""
    header = _header(file)
    if header is None:
        return _NO_ELF
    sections = _sections(file, header)
    if isinstance(sections, Unknown):
        return sections
    tables = [one for one in sections if one[1] == _DYNAMIC_SYMBOLS and one[6] < len(sections)]
    parts = [(one[4:6], sections[one[6]][4:6]) for one in tables]
    if not _are_within(file, (part for both in parts for part in both)):
        return _TRUNCATED
    if sum(symbols[1] + texts[1] for symbols, texts in parts) > min(_length(file), _LIMIT_BYTES):
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


def _header(file: BinaryIO) -> _Header | None:
    head = file.read(_HEADER.size)
    is_elf = len(head) == _HEADER.size and head.startswith(_BEGINNING)
    return _Header(*_HEADER.unpack(head)) if is_elf else None


def _sections(file: BinaryIO, header: _Header) -> list[tuple[Any, ...]] | Unknown:
    return _table(
        file, _SECTION, header.sections_at, header.section_bytes, header.sections, "no list of sections"
    )


def _table(
    file: BinaryIO, form: struct.Struct, at: int, entry_bytes: int, count: int, if_missing: str
) -> list[tuple[Any, ...]] | Unknown:
    if not count or entry_bytes != form.size:
        return Unknown(if_missing)
    if not _are_within(file, [(at, count * form.size)]):
        return _TRUNCATED
    return list(form.iter_unpack(_part(file, at, count * form.size)))


def _are_within(file: BinaryIO, parts: Iterable[tuple[int, ...]]) -> bool:
    length = _length(file)
    return all(offset + size <= length for offset, size in parts)


def _length(file: BinaryIO) -> int:
    return file.seek(0, SEEK_END)


def _part(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)
