"""A cache of a processor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cache:
    """One level of one kind: "Data", "Instruction" or "Unified"."""

    level: int
    kind: str
    size_bytes: int
    ways: int
    line_bytes: int
