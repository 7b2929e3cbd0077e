"""Costs of a host's basic operations, measured for a moment."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.facts import Fact

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


@dataclass(frozen=True)
class WakeUp:
    """How long a process takes to be woken by another CPU, in µs: the median of many times.

    ``busy_us`` is the same while a process of the lowest priority keeps the woken CPU from being idle.
    """

    idle_us: Fact[float]
    busy_us: Fact[float]


@dataclass(frozen=True)
class Probes:
    """Costs of single operations. ``stolen_share``: of all CPUs' time during the measurement."""

    wake_up: WakeUp
    system_call_ns: Fact[float]
    page_fault_ns: Fact[float]
    fsync_8kb_us: Fact[float]
    stolen_share: Fact[float]
