"""Sample counters, wait events and host usage while a step runs.

    Witness   counters, dead rows → samples while the step runs → its clients are gone → counters, sizes

Server-wide and host-wide figures hold whatever else happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgdyno.base.errors import ServerCrashedError
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.postgres.process.processes import pin
from pgdyno.postgres.sampling.activity import ActivitySampling
from pgdyno.postgres.sampling.counters import (
    client_pids,
    difference,
    read_counters,
    read_database_bytes,
    read_dead_tuples,
    wait_for_clients_to_end,
)
from pgdyno.postgres.sampling.directory_size import directory_bytes
from pgdyno.postgres.waits import ActivitySample
from pgdyno.studies.bundled.insert_benchmark.published import Footprint

_EVERY_S = 0.25  # a sample costs the server 0.3 ms of CPU time, measured on two cores
_CLIENTS_END_LIMIT_S = 30.0  # milliseconds, and seconds on a crowded host: counts would be missing


@dataclass(frozen=True)
class StepEvidence:
    """Samples and counters of a step, on the monotonic clock; None could not be read."""

    samples: tuple[ActivitySample, ...]
    counters: Mapping[str, float]
    dead_tuples: int
    footprint: Footprint


class Witness:
    """Looks at one server from a step's beginning to its end."""

    def __init__(self, arm: Arm, connection: psycopg.Connection, every_s: float) -> None:
        """Read the counters before a step, which is then sampled at this interval."""
        self._arm = arm
        self._connection = connection
        self._others = client_pids(connection)
        self._dead_tuples = read_dead_tuples(connection)
        self._before = read_counters(connection)
        self._sampling = ActivitySampling(connection, arm.postmaster_pid, every_s)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sample until the block ends, and then until the step's backends have ended too."""
        with self._sampling:
            yield
        wait_for_clients_to_end(self._connection, self._others, _CLIENTS_END_LIMIT_S)

    def evidence(self) -> StepEvidence:
        """Read the counters after the step, and return all samples."""
        return StepEvidence(
            samples=tuple(self._sampling.samples),
            counters=difference(self._before, read_counters(self._connection)),
            dead_tuples=self._dead_tuples,
            footprint=Footprint(
                database_bytes=read_database_bytes(self._connection),
                directory_bytes=_directory_bytes(self._arm),
                largest_process_bytes=self._sampling.largest_process_bytes or None,
            ),
        )


@contextmanager
def witness(arm: Arm, split: CpuSplit, interval_s: float) -> Iterator[Witness]:
    """Provide a witness on a connection of its own. It looks at least once in every interval.

    Its backend leaves the server's CPUs, if these are not all: on a single CPU shared with the backends that
    it looks at, it would run when they do not, and never see one compute.

    Raises: ServerCrashedError, with the server's log, if the server has gone; ServerError if it takes no
    connection, does not answer in time, or could not be sampled.
    """
    try:
        with closing(arm.connect()) as connection:
            if split.pinned:
                pin(connection.info.backend_pid, split.pinned)
            yield Witness(arm, connection, min(_EVERY_S, interval_s))
    except psycopg.OperationalError as error:
        raise arm.lost(error) from error


def _directory_bytes(arm: Arm) -> int | None:
    """Return the size of the data directory, which is the postmaster's working directory."""
    try:
        return directory_bytes(Path(f"/proc/{arm.postmaster_pid}/cwd"))
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ServerCrashedError(
            f"the server of {arm.variant.name} is not running any more", detail=arm.server.last_log_lines()
        ) from error
