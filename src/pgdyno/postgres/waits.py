"""Sampled wait events of a server's busy backends. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CPU = "CPU"  # the type for a backend without a wait event: it is on the CPU or runnable


@dataclass(frozen=True)
class Wait:
    """A busy backend's wait event, by PostgreSQL's names for type and event."""

    type: str
    event: str = ""

    def __str__(self) -> str:
        """Return the usual notation: ``IO:DataFileRead``."""
        return f"{self.type}:{self.event}" if self.event else self.type


@dataclass(frozen=True, slots=True)
class ActivitySample:
    """One sample. ``waits`` counts busy backends (active clients and their parallel workers) by event.

    ``statements`` counts them by query id and event, if statements were sampled.
    """

    at_s: float  # on the monotonic clock, or relative to a step's start
    waits: tuple[tuple[Wait, int], ...] = ()
    is_checkpointing: bool = False
    autovacuum_workers: int = 0
    statements: tuple[tuple[int, Wait, int], ...] = ()
