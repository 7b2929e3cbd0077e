"""Costs of a host's basic operations, measured briefly, and obstacles to io_uring."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgdyno.base.facts import Fact

LZ4 = "lz4"


@dataclass(frozen=True)
class PageCompression:
    """Sampled pages without the hole in their middle, which full-page images leave out.

    Units: bytes and microseconds are means per page; ``write_ns`` is per byte written sequentially and
    flushed.
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
        """Time that writing the saved bytes of a page would take."""
        return self.saved_bytes * self.write_ns / 1000


@dataclass(frozen=True)
class WakeUp:
    """Time to wake a process from another CPU, in µs: the median of many wake-ups.

    ``busy_us`` is measured while a lowest-priority process keeps the woken CPU busy.
    """

    idle_us: Fact[float]
    busy_us: Fact[float]


@dataclass(frozen=True)
class Probes:
    """Costs of single operations. ``stolen_share`` is the share of all CPUs' time during the measurement."""

    wake_up: WakeUp
    system_call_ns: Fact[float]
    page_fault_ns: Fact[float]
    fsync_8kb_us: Fact[float]
    stolen_share: Fact[float]


class IoUringCause(StrEnum):
    """Obstacles to ``io_method=io_uring``."""

    NOT_COMPILED_IN = "not compiled in"
    FORBIDDEN = "forbidden by the kernel"  # by sysctl, seccomp or a security module; or without io_uring
    MEMLOCK = "too little memory may be locked"
    OPEN_FILES = "too few files may be opened"
    UNCLEAR = "the server does not accept it"


@dataclass(frozen=True)
class IoUringObstacle:
    """Reason why a server cannot use io_uring here, with the server's or kernel's message as evidence."""

    cause: IoUringCause
    evidence: str
    hint: str

    def __str__(self) -> str:
        """Return cause, evidence and remedy in one line."""
        return f"{self.cause} ({self.evidence}); {self.hint}"
