"""The processor's part in a transaction: events per transaction, and where its slots went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INSTRUCTIONS: Final = "instructions"
L1D_MISSES: Final = "L1d misses"
CYCLES: Final = "cycles"
IPC: Final = "instructions per cycle"


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
