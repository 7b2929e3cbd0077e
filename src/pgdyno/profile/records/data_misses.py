"""Data cache misses of a transaction by the structure of PostgreSQL that they fall on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StructureMisses:
    """A structure's misses per transaction: in the first cache, and of these in the second one too.

    ``functions`` have most of them, the first one the most; none where the program has no names.
    """

    structure: str
    l1d: float
    l2: float
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataMisses:
    """The misses of one session's transactions; structures add up to all of them.

    ``source`` says how they were simulated, ``remarks`` what is not told apart. ``instructions`` are those of
    a transaction in the trace.
    """

    source: str
    transactions: int
    instructions: float
    structures: tuple[StructureMisses, ...]
    remarks: tuple[str, ...] = ()

    @property
    def l1d(self) -> float:
        """All misses in the first cache."""
        return sum(one.l1d for one in self.structures)

    @property
    def l2(self) -> float:
        """All misses in both caches."""
        return sum(one.l2 for one in self.structures)
