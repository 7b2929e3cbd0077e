"""Port: the store of a fleet's trials, a file or a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial


@dataclass(frozen=True)
class FleetEvent:
    """One of the things that befell a trial. ``at`` is the time: ISO 8601, UTC."""

    at: str
    what: str
    detail: str | None = None


class TrialStore(Protocol):
    """The trials of one fleet, with all that befell them. Its methods raise StorageError.

    What a controller leases is its own until it closes the store, or ends in any other way.
    """

    def begin(self, order: FleetOrder, fleet_id: str) -> str:
        """Add the order's trials that are not there yet; return the fleet's id, which is given once.

        Raises: StorageError if the fleet was begun with another command: its trials would not be alike.
        """
        ...

    def trials(self) -> list[FleetTrial]:
        """Return all trials, by machine and number."""
        ...

    def changed_by_others(self) -> Sequence[FleetTrial]:
        """Return the trials that another controller may have changed."""
        ...

    def abandoned(self) -> Sequence[FleetTrial]:
        """Return the leased trials whose controller has ended."""
        ...

    def write(
        self, before: FleetTrial, after: FleetTrial, event: FleetEvent, finding: FleetFinding | None = None
    ) -> bool:
        """Write a trial's new state, the event behind it, and its result; all of it or nothing.

        False: nothing is written, since the trial is not as it was ``before``, its machine has another lease,
        or another trial has this result.
        """
        ...

    def record(self, trial: FleetTrial, event: FleetEvent) -> None:
        """Write an event that changed nothing."""
        ...

    def findings(self) -> Iterator[tuple[str, FleetFinding]]:
        """Yield the machine and the finding of every trial that is done."""
        ...

    def answered_with(self, finding: FleetFinding) -> FleetTrial | None:
        """Return the trial that has this result, by its id or its figures; None if there is none."""
        ...

    def seconds(self) -> Iterator[tuple[str, float]]:
        """Yield machine and time of every trial that is done, from its last lease to its result."""
        ...

    def events(self) -> dict[str, int]:
        """Return how often each thing befell a trial."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...
