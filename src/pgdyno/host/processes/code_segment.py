"""A part of a program file that is mapped to be executed."""

from __future__ import annotations

from dataclasses import dataclass

_PAGE_BYTES = 4096


@dataclass(frozen=True)
class CodeSegment:
    """Where it lies in memory, before a program is moved as a whole, and in the file."""

    address: int
    offset: int
    size: int

    def has(self, address: int) -> bool:
        """Whether an address is in it."""
        return self.address <= address < self.address + self.size

    @property
    def pages(self) -> range:
        """The numbers of its pages of 4 kB."""
        return range(self.address // _PAGE_BYTES, (self.address + self.size - 1) // _PAGE_BYTES + 1)

    def address_of(self, offset: int) -> int | None:
        """Return the address of a place in the file; None if it is in another part."""
        inside = self.offset <= offset < self.offset + self.size
        return self.address + offset - self.offset if inside else None
