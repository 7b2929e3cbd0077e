"""Port: the workers that make trials, here or on other machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Protocol

from pgdyno.model.fleets.fleet_order import TrialOrder


class TrialWorkers(Protocol):
    """One worker for each machine, by the machine's name."""

    def beats(self) -> Mapping[str, float]:
        """Return the last sign of life of each worker: a number that changes with every new one.

        It may take a while, if nobody can be asked now. Raises: RemoteHostError if nobody can be at last.
        """
        ...

    def submit(self, machine: str, make: Callable[[TrialOrder], bytes], order: TrialOrder) -> Future[bytes]:
        """Have a machine's worker make a trial. It makes one at a time."""
        ...
