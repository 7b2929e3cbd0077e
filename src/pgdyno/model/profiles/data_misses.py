"""Data cache misses of a transaction by the structure of PostgreSQL that they fall on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.profiles.element_layout import ElementLayout


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
class MissesInTurns:
    """A structure's misses per transaction of one session: alone, and where another has turns between."""

    structure: str
    l1d_alone: float
    l1d: float
    l2_alone: float
    l2: float

    @property
    def more_l1d(self) -> float:
        """Additional misses in the first cache."""
        return self.l1d - self.l1d_alone

    @property
    def more_l2(self) -> float:
        """Additional misses in both caches."""
        return self.l2 - self.l2_alone


def total(name: str, rows: Sequence[MissesInTurns]) -> MissesInTurns:
    """Return the sum of rows."""
    return MissesInTurns(
        name,
        sum(one.l1d_alone for one in rows),
        sum(one.l1d for one in rows),
        sum(one.l2_alone for one in rows),
        sum(one.l2 for one in rows),
    )


@dataclass(frozen=True)
class SessionsInTurns:
    """A session's misses where another one has a turn after each of its own; structures add up to all.

    ``turns`` are those of a transaction, ``flushes`` those of them that end where WAL is written to the disk.
    """

    turns: float
    structures: tuple[MissesInTurns, ...]
    flushes: float = 0.0


@dataclass(frozen=True)
class DataMisses:
    """The misses of one session's transactions; structures add up to all of them.

    ``source`` says how they were simulated, ``remarks`` what is not told apart. ``instructions`` are those of
    a transaction in the trace. ``in_turns`` has the same session beside another one on its CPU, if that is
    known, ``elements`` are those of arrays in shared memory, if the program has debug information.
    """

    source: str
    transactions: int
    instructions: float
    structures: tuple[StructureMisses, ...]
    in_turns: SessionsInTurns | None = None
    elements: tuple[ElementLayout, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def l1d(self) -> float:
        """All misses in the first cache."""
        return sum(one.l1d for one in self.structures)

    @property
    def l2(self) -> float:
        """All misses in both caches."""
        return sum(one.l2 for one in self.structures)
