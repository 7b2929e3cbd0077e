"""Records of one step by variant, from an experiment's blocks without void ones, and their means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

from pgdyno.measure.view.series import blocks_of, variants_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.step_record import RoleRecord, StepRecord
from pgdyno.report.charts.rates import RateLine, RatePoint, RateStrip

_OWN_ROLES = {"rows": "insert", "queries": "query"}


@dataclass(frozen=True)
class Recorded:
    """One variant in one round of a step. Rounds count from 1."""

    variant: str
    round: int
    record: StepRecord


def recorded(experiment: Experiment, workload: str) -> tuple[Recorded, ...]:
    """Return the records of all valid blocks, by variant and round, the baseline first."""
    order = variants_of(experiment)
    found = [
        Recorded(arm.variant, trial.round, arm.step)
        for trial, block in blocks_of(experiment, workload)
        for arm in block.arms
        if arm.step is not None and arm.variant in order and not block.void_for(arm.variant)
    ]
    return tuple(sorted(found, key=lambda one: (order.index(one.variant), one.round)))


def of_variant(records: Iterable[Recorded], variant: str) -> list[StepRecord]:
    """Return one variant's records, by round."""
    return [one.record for one in records if one.variant == variant]


def mean_of(records: Iterable[StepRecord], value: Callable[[StepRecord], float | None]) -> float | None:
    """Return the mean over the rounds that have a value; None if none has."""
    values = [found for record in records if (found := value(record)) is not None]
    return fmean(values) if values else None


def role_of(record: StepRecord, name: str) -> RoleRecord | None:
    """Return the role of this name; None if the step has no such role."""
    return next((role for role in record.roles if role.name == name), None)


def roles_in(records: Iterable[Recorded]) -> tuple[str, ...]:
    """Return the names of all roles, in the order of first appearance."""
    return tuple(dict.fromkeys(role.name for one in records for role in one.record.roles))


def fairness(role: RoleRecord) -> float | None:
    """Return the slowest client's rate relative to the fastest's; None for fewer than two clients.

    A client's rate covers the time until its last transaction ended.
    """
    rates = [client.transactions / client.ended_s for client in role.clients if client.ended_s > 0]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) > 0 else None


def rate_strips(experiment: Experiment, records: Iterable[Recorded]) -> tuple[RateStrip, ...]:
    """Return every variant's rate over time, in rows or queries.

    A step with fewer transactions than intervals has no rate over time and is omitted.
    """
    found = list(records)
    places = {variant.name: place for place, variant in enumerate(experiment.variants)}
    strips = []
    for variant in dict.fromkeys(one.variant for one in found):
        lines = tuple(
            RateLine(one.round, points, one.record.stalls)
            for one in found
            if one.variant == variant and (points := _points(one.record))
        )
        if lines:
            strips.append(RateStrip(variant, places[variant], lines))
    return tuple(strips)


def _points(record: StepRecord) -> tuple[RatePoint, ...]:
    name = _OWN_ROLES.get(record.operations, record.operations)
    role = role_of(record, name)
    if role is None or role.transactions < len(record.intervals) or len(record.intervals) < 2:
        return ()
    each = record.completed / role.transactions
    return tuple(
        RatePoint(one.start_s, one.length_s, one.transactions.get(name, 0) * each / one.length_s)
        for one in record.intervals
        if one.length_s > 0
    )
