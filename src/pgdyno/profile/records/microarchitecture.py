"""The processor's work for a transaction: events per transaction, and the use of its slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INSTRUCTIONS: Final = "instructions"
L1D_MISSES: Final = "L1d misses"
CYCLES: Final = "cycles"
PAGE_BYTES: Final = 4096
SHARES: Final = (0.90, 0.99)
"""Shares of all executions; the fewest places that hold each share are counted."""


@dataclass(frozen=True)
class PageHeat:
    """An executed page of 4 kB. ``index`` counts pages from the start of the program's code.

    ``share`` is its share of the program's executions, ``function`` the function with most of them.
    """

    index: int
    share: float
    function: str


@dataclass(frozen=True)
class HotCode:
    """The smallest numbers of places that hold a share of all executions.

    ``code_bytes`` is None if executions are not known by instruction.
    """

    share: float
    code_bytes: int | None
    lines: int
    pages: int
    large_pages: int


@dataclass(frozen=True)
class Elsewhere:
    """Code outside the program, such as a library, and its share of all executions."""

    name: str
    share: float


@dataclass(frozen=True)
class TextLayout:
    """The code of a program that a transaction executes.

    ``pages`` is the number of all pages of its code. ``source`` is the method of measurement, ``unit`` the
    unit of ``counted``. ``remarks`` state what is missing.
    """

    program: str
    source: str
    unit: str
    is_simulated: bool
    counted: int
    pages: int
    heat: tuple[PageHeat, ...]
    coverage: tuple[HotCode, ...]
    elsewhere: tuple[Elsewhere, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StructureMisses:
    """A structure's misses per transaction: in the first level, and those of them that also miss the second.

    ``functions`` cause most of the misses, in descending order; empty if the program has no names.
    """

    structure: str
    l1d: float
    l2: float
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataMisses:
    """The misses of one session's transactions; the structures add up to all misses.

    ``source`` is the method of simulation; ``remarks`` state its limits. ``instructions`` is the number per
    transaction in the trace.
    """

    source: str
    transactions: int
    instructions: float
    structures: tuple[StructureMisses, ...]
    remarks: tuple[str, ...] = ()

    @property
    def l1d(self) -> float:
        """All misses of the first level, per transaction."""
        return sum(one.l1d for one in self.structures)

    @property
    def l2(self) -> float:
        """All misses of both levels, per transaction."""
        return sum(one.l2 for one in self.structures)


@dataclass(frozen=True)
class Mean:
    """A mean over windows or runs, with its 95 % confidence interval if there are at least two."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class EventCount:
    """The number of events of a kind per transaction. ``event`` is the source's name for it.

    ``ran`` is the fraction of the time in which the event was counted. If a processor has too few counters,
    events are multiplexed and counts are extrapolated.
    """

    name: str
    per_transaction: Mean
    event: str
    ran: float = 1.0


@dataclass(frozen=True)
class SlotShare:
    """A share of the processor's pipeline slots, in the top-down method. ``level`` is 1 or 2.

    Parts of level 2 divide the part of level 1 named ``part_of``.
    """

    name: str
    level: int
    share: Mean
    part_of: str = ""


@dataclass(frozen=True)
class Microarchitecture:
    """The sessions' work on the processor, counted or simulated; simulated figures imply no times.

    ``repeats_within`` is the relative difference between the instructions of two equal simulations.
    """

    source: str
    is_simulated: bool
    events: tuple[EventCount, ...]
    slots: tuple[SlotShare, ...] = ()
    ipc: Mean | None = None
    repeats_within: float | None = None
    remarks: tuple[str, ...] = ()
