"""A trial of a fleet: the whole experiment once, on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FleetTrialState(StrEnum):
    """A trial whose worker was lost, or whose attempt failed, waits again; at last it has failed."""

    WAITING = "waiting"
    LEASED = "measuring"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class FleetTrial:
    """``lease`` is the number of its latest lease, from 1: an answer to an earlier one does not count.

    ``attempts`` have failed so far; ``reason`` is why the last one did. ``experiment`` is its result's id.
    """

    machine: str
    number: int  # on its machine, from 1
    state: FleetTrialState = FleetTrialState.WAITING
    lease: int = 0
    attempts: int = 0
    experiment: str | None = None
    reason: str | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Its machine and its number there: no other trial of the fleet has both."""
        return self.machine, self.number

    def __str__(self) -> str:
        """Return it in words."""
        return f"trial {self.number} of {self.machine}"
