"""Progress of a fleet, machine by machine: planned, done, left, its time and its price."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MachineProgress:
    """Counts are trials. ``trial_s`` is the time of one here, as far as it is known.

    ``left_s`` and ``cost`` are of all that are not done, and of all; None: not known, or no price.
    ``reason`` is why its last attempt failed.
    """

    machine: str
    trials: int
    done: int
    measuring: int
    failed: int
    trial_s: float | None
    left_s: float | None
    cost: float | None
    reason: str | None

    @property
    def waiting(self) -> int:
        """Trials that wait for the machine's worker."""
        return self.trials - self.done - self.measuring - self.failed


@dataclass(frozen=True)
class FleetProgress:
    """A fleet. Its machines work beside each other: ``left_s`` is that of the last one to end.

    ``is_measured``: times are those of trials that were made, else of the experiment's budget. ``lost`` is
    how often nothing was heard of a worker, ``dropped`` how many answers came after their lease.
    """

    name: str
    command: tuple[str, ...]
    machines: tuple[MachineProgress, ...]
    left_s: float | None
    cost: float | None
    is_measured: bool
    lost: int
    dropped: int

    @property
    def trials(self) -> int:
        """All trials."""
        return sum(one.trials for one in self.machines)

    @property
    def done(self) -> int:
        """Those with a result."""
        return sum(one.done for one in self.machines)

    @property
    def failed(self) -> int:
        """Those that have failed as often as they are tried."""
        return sum(one.failed for one in self.machines)
