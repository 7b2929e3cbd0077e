"""A segment of an executable file that is mapped for execution."""

from __future__ import annotations

from dataclasses import dataclass

_PAGE_BYTES = 4096


@dataclass(frozen=True)
class CodeSegment:
    """Its address in memory before relocation, its offset in the file, and its size."""

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
