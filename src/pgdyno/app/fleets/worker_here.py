"""The worker that is this process: it makes the trials of one machine, this one, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count

from pgdyno.model.errors import PgdynoError
from pgdyno.model.fleets.fleet_order import TrialOrder


@dataclass
class WorkerHere:
    """A worker that answers when it is asked. An interruption ends its trial as any measurement."""

    machine: str

    def __post_init__(self) -> None:
        """Begin to live."""
        self._beats = count()

    def beats(self) -> Mapping[str, float]:
        """Return a sign of life: who asks is alive."""
        return {self.machine: next(self._beats)}

    def submit(
        self,
        machine: str,  # noqa: ARG002 — there is one
        make: Callable[[TrialOrder], bytes],
        order: TrialOrder,
    ) -> Future[bytes]:
        """Make the trial now."""
        answer: Future[bytes] = Future()
        try:
            answer.set_result(make(order))
        except PgdynoError as error:
            answer.set_exception(error)
        return answer
