"""Measures the steps of a longer workload, each as a whole, on one arm at a time.

Meters are read before and after a step. Dirty pages that a step leaves behind count for the step that writes
them, as in the published benchmark.

Samples counters, wait events and host usage while a step runs.

    Witness   counters, dead rows → samples while the step runs → its clients have exited → counters, sizes

Server-wide and host-wide figures include all other activity during the step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from pgdyno.base.errors import MeasurementError, ServerCrashedError
from pgdyno.base.ports import Progress
from pgdyno.load.step_results import StepResult
from pgdyno.measure.arenas.arena import Arena, OneArm
from pgdyno.measure.arenas.arm import Arm, difference, meter_values, read_meters
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.before_after import Edge, HostCounters, audit_between
from pgdyno.measure.blocks.blocks import void_reason
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment
from pgdyno.model.experiments.metric import CLIENT_CPU, THROUGHPUT, Readings
from pgdyno.model.experiments.step_record import RoleRecord, StepRecord
from pgdyno.model.experiments.workload import Step, Workload
from pgdyno.postgres.process.processes import pin
from pgdyno.postgres.sampling.activity import ActivitySampling
from pgdyno.postgres.sampling.counters import (
    client_pids,
    directory_bytes,
    read_counters,
    read_database_bytes,
    read_dead_tuples,
    wait_for_clients_to_end,
)
from pgdyno.postgres.sampling.counters import (
    difference as counter_difference,
)
from pgdyno.postgres.waits import ActivitySample
from pgdyno.studies.bundled.insert_benchmark.published import Footprint, Work, published, rates_by_second
from pgdyno.studies.bundled.insert_benchmark.stalls import busy_backends, find_stalls, wait_shares
from pgdyno.studies.bundled.insert_benchmark.steps import CLEAN_UP

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
            counters=counter_difference(self._before, read_counters(self._connection)),
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


_LATENCIES = ("p50", "p95", "p99", "p999", "max")
_QUERIES = ("market", "register", "pdc", "point")


@dataclass(frozen=True)
class Observed:
    """A step as observed, from the connection of its clients to the end of its work."""

    result: StepResult
    began: Edge
    ended: Edge
    delta: Readings
    evidence: StepEvidence

    @property
    def wall_s(self) -> float:
        """Duration of the step."""
        return self.ended.cpu.at_s - self.began.cpu.at_s


@dataclass(frozen=True)
class InsertBenchmarkPasses:
    """Passes of the benchmark's steps, each after the unmeasured steps that it needs."""

    def checked(
        self, experiment: Experiment, _arena: Arena, _workloads: Sequence[Workload], _progress: Progress
    ) -> Experiment:
        """Return the experiment unchanged: the benchmark has no answers to check."""
        return experiment

    def measured(self, on: OneArm, workloads: Sequence[Workload]) -> list[Block]:
        """Run the steps one after another and return a block per step."""
        return [self._measured(on, workload) for workload in workloads]

    def _measured(self, on: OneArm, workload: Workload) -> Block:
        step, place, name = workload.kind, f"round {on.round + 1}", on.arm.variant.name
        assert isinstance(step, Step)  # noqa: S101 — a pass has only steps
        for earlier in step.preceded_by:
            on.announce(f"{place}: {earlier.name} on {name}, not measured")
            on.loads.step(on.arm, earlier, step_seed(on.design, on.round))
        on.announce(f"{place}: {workload.name} on {name}")
        return measure_step(on.loads, on.arm, step, on.round, on.design, on.meters)


PASSES = InsertBenchmarkPasses


def measure_step(
    loads: Loads,
    arm: Arm,
    step: Step,
    round_index: int,
    design: Design,
    meters: Sequence[MeterModule],
) -> Block:
    """Run one step on an arm and return it as a block with this arm only.

    Raises: GeneratorFailedError; MeasurementError if the step completed nothing.
    """
    seed = step_seed(design, round_index)
    if step.settle_s is not None:
        _clean_up(loads, arm, step, seed)
    observed = _observe(loads, arm, step, seed, meters)
    client_us = observed.result.client_cpu_us
    audit = audit_between(observed.began, observed.ended, observed.delta, client_us, loads.split)
    return Block(
        workload=step.name,
        round=round_index,
        index=0,
        started_ns=observed.began.at_ns,
        arms=(_arm_block(arm, step, observed, meters),),
        void=void_reason(audit, design.thresholds),
        audit=audit,
    )


def step_seed(design: Design, round_index: int) -> int:
    """Return the seed of a pass: the same for all arms, different in every pass."""
    return design.seed * 1000 + round_index


def _clean_up(loads: Loads, arm: Arm, step: Step, seed: int) -> None:
    """Vacuum and checkpoint, then wait until ``settle_s`` after the beginning of this clean-up."""
    began = time.monotonic()
    loads.step(arm, replace(step, name=CLEAN_UP, duration_s=None), seed)
    time.sleep(max(0.0, (step.settle_s or 0.0) - (time.monotonic() - began)))


def _observe(loads: Loads, arm: Arm, step: Step, seed: int, meters: Sequence[MeterModule]) -> Observed:
    """Run a step between two readings.

    The processes are read before the clients connect and while they are still connected, because the resource
    use of a backend is lost when it exits. Meters that backends report late are read after they exited.
    """
    edges: list[Edge] = []

    def read() -> None:
        edges.append(Edge.read(arm, meters, loads.split))

    with witness(arm, loads.split, step.interval_s) as seen:
        with seen.watching():
            result = loads.step(arm, step, seed, at_start=read, at_end=read)
        late = read_meters([meter for meter in meters if meter.METER.reports_late], arm)
        evidence = seen.evidence()
    began, ended = edges
    delta = difference(began.readings, {**ended.readings, **late})
    return Observed(result, began, ended, {**delta, CLIENT_CPU: (result.client_cpu_us,)}, evidence)


def _arm_block(arm: Arm, step: Step, observed: Observed, meters: Sequence[MeterModule]) -> ArmBlock:
    result = observed.result
    elapsed_s = result.running_s + result.chores_s
    completed = operations(step, result) if result.has_worked(leading_role(step)) else 0
    if completed == 0 or elapsed_s == 0:
        raise MeasurementError(f"{step.name} completed nothing on the server of {arm.variant.name}")
    host = observed.began.host, observed.ended.host
    record = step_record(step, result, observed.evidence, host, observed.wall_s)
    values = _values(step, observed, completed, elapsed_s, meters)
    return ArmBlock(arm.variant.name, completed, elapsed_s, values, record)


def _values(
    step: Step, observed: Observed, completed: int, elapsed_s: float, meters: Sequence[MeterModule]
) -> dict[str, float]:
    result = observed.result
    role = result.roles[leading_role(step)]
    values = {THROUGHPUT: completed / elapsed_s}
    values |= {f"latency_ms_{name}": role.latency_ms[name] for name in _LATENCIES}
    values |= meter_values(meters, observed.delta, completed)
    if step.target_rows_per_s is not None:
        inserted = result.roles["insert"].transactions * step.rows_per_commit
        values["background_rate_share"] = inserted / elapsed_s / step.target_rows_per_s
    return values


def leading_role(step: Step) -> str:
    """Return the role of the operations that a step counts: "insert" or "query"."""
    return "insert" if step.operations == "rows" else "query"


def operations(step: Step, result: StepResult) -> int:
    """Return the number of rows or queries that a step completed."""
    if step.indexed_rows is not None:
        return step.indexed_rows
    if step.operations == "rows":
        return _rows_inserted(step, result)
    return sum(result.roles["query"].statements.get(name, 0) for name in _QUERIES)


def step_record(
    step: Step,
    result: StepResult,
    evidence: StepEvidence,
    host: tuple[HostCounters, HostCounters],
    wall_s: float,
) -> StepRecord:
    """Return the record of a step. ``wall_s`` is the time between the two readings of host counters."""
    role, ended_s = leading_role(step), result.running_s + result.chores_s
    samples = _samples(evidence.samples, result.began_s, ended_s)
    before, after = host
    return StepRecord(
        operations=step.operations,
        completed=operations(step, result),
        running_s=result.running_s,
        chores_s=result.chores_s,
        roles=tuple(result.roles.values()),
        intervals=result.intervals,
        stalls=find_stalls(result.intervals, samples, role, until_s=_all_at_work_until_s(step, result)),
        waits=wait_shares(samples),
        wait_samples=busy_backends(samples),
        counters=evidence.counters,
        dead_tuples=evidence.dead_tuples,
        published=published(
            _work(step, result),
            before.system_until(after, wall_s),
            before.device_until(after, wall_s),
            evidence.footprint,
        ),
        target_rows_per_s=step.target_rows_per_s,
    )


def _work(step: Step, result: StepResult) -> Work:
    role, is_loading = leading_role(step), step.operations == "rows"
    completed = operations(step, result)
    return Work(
        is_loading=is_loading,
        rows_inserted=completed if is_loading else _rows_inserted(step, result),
        queries=0 if is_loading else completed,
        elapsed_s=result.running_s + result.chores_s,
        longest_ms=result.roles[role].latency_ms.get("max"),
        rates=rates_by_second(result.intervals, role, step.rows_per_commit if is_loading else 1),
    )


def _rows_inserted(step: Step, result: StepResult) -> int:
    return result.roles["insert"].transactions * step.rows_per_commit


def _all_at_work_until_s(step: Step, result: StepResult) -> float | None:
    """Return the time at which the first client completed its part; None for steps of fixed duration."""
    return None if step.duration_s is not None else _first_end_s(result.roles[leading_role(step)])


def _first_end_s(role: RoleRecord) -> float | None:
    return min((client.ended_s for client in role.clients if client.transactions > 0), default=None)


def _samples(samples: Sequence[ActivitySample], began_s: float, ended_s: float) -> list[ActivitySample]:
    """Return the samples within the step, with times from its beginning."""
    shifted = (replace(sample, at_s=sample.at_s - began_s) for sample in samples)
    return [sample for sample in shifted if 0 <= sample.at_s <= ended_s]
