"""The processor's part in a transaction: events per transaction, and where its slots went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INSTRUCTIONS: Final = "instructions"
L1D_MISSES: Final = "L1d misses"
CYCLES: Final = "cycles"
IPC: Final = "instructions per cycle"
PAGE_BYTES: Final = 4096
SHARES: Final = (0.90, 0.99)
"""Of what is executed; the places that hold so much of it are counted."""


@dataclass(frozen=True)
class PageHeat:
    """A page of 4 kB that was executed. ``index`` counts pages from the first of the program's code.

    ``share`` is its part of what was executed in the program, ``function`` the one with the most of it.
    """

    index: int
    share: float
    function: str


@dataclass(frozen=True)
class HotCode:
    """The fewest places that hold a share of all executions.

    ``code_bytes`` None: single bytes are not seen.
    """

    share: float
    code_bytes: int | None
    lines: int
    pages: int
    large_pages: int


@dataclass(frozen=True)
class Elsewhere:
    """Code outside the program, such as a library's, and its part of all that was executed."""

    name: str
    share: float


@dataclass(frozen=True)
class TextLayout:
    """The code of a program that a transaction executes.

    ``pages`` are all pages of its code. ``source`` says by what it is known, ``unit`` what was counted.
    ``remarks`` say what is not seen.
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


@dataclass(frozen=True)
class Mean:
    """A mean over windows or runs and its 95 % interval. Fewer than two have none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class EventCount:
    """How often something happened per transaction. ``event`` is the name that its source gives it.

    ``ran`` is the part of the time in which it was counted: where a processor has fewer counters than are
    asked for, they take turns, and counts are extrapolated.
    """

    name: str
    per_transaction: Mean
    event: str
    ran: float = 1.0


@dataclass(frozen=True)
class SlotShare:
    """A part of the processor's slots, each of which could have taken an operation. ``level`` is 1 or 2.

    Parts of the second level divide the one of the first that is named ``part_of``.
    """

    name: str
    level: int
    share: Mean
    part_of: str = ""


@dataclass(frozen=True)
class Microarchitecture:
    """The sessions' work on the processor, counted or simulated: then no time follows from it.

    ``repeats_within`` is how far the instructions of two equal simulations were apart, as a share.
    """

    source: str
    is_simulated: bool
    events: tuple[EventCount, ...]
    slots: tuple[SlotShare, ...] = ()
    ipc: Mean | None = None
    repeats_within: float | None = None
    remarks: tuple[str, ...] = ()
