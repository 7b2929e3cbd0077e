"""Count planned and launched parallel workers of consecutive queries.

PostgreSQL counts them from 18 on. They are read between queries, by a connection of their own: nothing counts
inside what is timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.load.query_session import QuerySession
from pgdyno.measure.arenas.arm import Arm, difference, meter_values, read_meters
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.metric import LAUNCHED_WORKERS, PLANNED_WORKERS, Readings


class LaunchedWorkers:
    """Reads the meter of parallel workers after each query of a session."""

    def __init__(self, arm: Arm, session: QuerySession, meters: Sequence[MeterModule]) -> None:
        """Begin now. Raises: ServerError."""
        self._arm, self._session = arm, session
        self._meters = [meter for meter in meters if meter.METER.metric == LAUNCHED_WORKERS]
        self._before = read_meters(self._meters, arm)

    def since(self) -> Mapping[str, float]:
        """Return how many were planned since the last call, and if any, the share that was launched.

        Nothing where the server does not count them. Raises: GeneratorFailedError, ServerError.
        """
        if not self._before:
            return {}
        self._session.report()
        now = read_meters(self._meters, self._arm)
        delta = difference(self._before, now)
        self._before = now
        return {**planned_workers(delta), **meter_values(self._meters, delta, 1)}


def planned_workers(delta: Readings) -> dict[str, float]:
    """Return the metric of workers planned; nothing where the server does not count them."""
    if LAUNCHED_WORKERS not in delta:
        return {}
    _, planned = delta[LAUNCHED_WORKERS]
    return {PLANNED_WORKERS: planned}
