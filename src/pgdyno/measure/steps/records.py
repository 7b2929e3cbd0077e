"""Assemble the record of a step from its results and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.host.activity import ActivitySample
from pgdyno.load.steps.told_step import StepResult
from pgdyno.measure.blocks.published import Work, published, rates_by_second
from pgdyno.measure.blocks.stalls import busy_backends, find_stalls, wait_shares
from pgdyno.measure.steps.sampler import HostCounters, StepEvidence
from pgdyno.model.experiments.step_record import RoleRecord, StepRecord
from pgdyno.model.experiments.workload import Step

_QUERIES = ("market", "register", "pdc", "point")


def leading_role(step: Step) -> str:
    """Return the role whose operations a step counts."""
    return "insert" if step.operations == "rows" else "query"


def operations(step: Step, result: StepResult) -> int:
    """Return how many rows or queries a step has completed."""
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
    """Return all that is known about a step. ``wall_s`` is the time between the two looks at the host."""
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
    """Return when the first client had done its part; None if all work until the time is up."""
    return None if step.duration_s is not None else _first_end_s(result.roles[leading_role(step)])


def _first_end_s(role: RoleRecord) -> float | None:
    return min((client.ended_s for client in role.clients if client.transactions > 0), default=None)


def _samples(samples: Sequence[ActivitySample], began_s: float, ended_s: float) -> list[ActivitySample]:
    """Return the samples of the step itself, on its own clock."""
    shifted = (replace(sample, at_s=sample.at_s - began_s) for sample in samples)
    return [sample for sample in shifted if 0 <= sample.at_s <= ended_s]
