"""Samples counters, wait events and host usage while a step runs.

    Witness   counters, dead rows → samples while the step runs → its clients have exited → counters, sizes

Server-wide and host-wide figures include all other activity during the step.
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
_CLIENTS_END_LIMIT_S = 30.0  # takes milliseconds, or seconds on a busy host; earlier, counts are missing


@dataclass(frozen=True)
class StepEvidence:
    """Samples and counters of a step, on the monotonic clock; None if not readable."""

    samples: tuple[ActivitySample, ...]
    counters: Mapping[str, float]
    dead_tuples: int
    footprint: Footprint


class Witness:
    """Observes one server from the beginning of a step to its end."""

    def __init__(self, arm: Arm, connection: psycopg.Connection, every_s: float) -> None:
        """Read the counters before a step. ``every_s`` is the sampling interval."""
        self._arm = arm
        self._connection = connection
        self._others = client_pids(connection)
        self._dead_tuples = read_dead_tuples(connection)
        self._before = read_counters(connection)
        self._sampling = ActivitySampling(connection, arm.postmaster_pid, every_s)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sample within the context, then wait until the step's backends have exited."""
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
    """Provide a witness on its own connection. It samples at least once in every interval.

    Its backend is moved off the server's CPUs, unless these are all CPUs: on a single CPU shared with the
    observed backends it would only run while they do not, and never see one compute.

    Raises: ServerCrashedError, with the server's log, if the server has exited; ServerError if it accepts no
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
            f"the server of {arm.variant.name} is no longer running", detail=arm.server.last_log_lines()
        ) from error
