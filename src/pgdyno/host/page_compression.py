"""LZ4's compression ratio and cost for pages of a server's tables and indexes."""

from __future__ import annotations

from dataclasses import dataclass

LZ4 = "lz4"


@dataclass(frozen=True)
class PageCompression:
    """Sampled pages without the hole in their middle, which no full-page image contains.

    Units: bytes and microseconds are means per page; ``write_ns`` per byte that is written and flushed in
    sequence.
    """

    pages: int
    image_bytes: float
    compressed_bytes: float
    compression_us: float
    write_ns: float

    @property
    def saved_bytes(self) -> float:
        """Bytes of WAL saved per page."""
        return self.image_bytes - self.compressed_bytes

    @property
    def saved_us(self) -> float:
        """Time in which the saved bytes of a page would have been written."""
        return self.saved_bytes * self.write_ns / 1000
