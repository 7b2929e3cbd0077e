"""Waits of a server's busy backends, as looks at it show them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CPU = "CPU"  # the type of a backend that waits for nothing: it computes, or wants to


@dataclass(frozen=True)
class Wait:
    """The wait of a busy backend, by PostgreSQL's names for types and events."""

    type: str
    event: str = ""

    def __str__(self) -> str:
        """Return it as PostgreSQL's documentation writes it: ``IO:DataFileRead``."""
        return f"{self.type}:{self.event}" if self.event else self.type


@dataclass(frozen=True, slots=True)
class ActivitySample:
    """One look at a server. ``waits`` counts busy backends: active clients and their parallel workers."""

    at_s: float  # on the monotonic clock, or from a step's beginning
    waits: tuple[tuple[Wait, int], ...] = ()
    is_checkpointing: bool = False
    autovacuum_workers: int = 0
