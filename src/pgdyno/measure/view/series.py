"""Series for charts and their tables, from an experiment's blocks. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.stats import nested
from pgdyno.stats.sample import Sample

ROUNDS_FOR_AN_INTERVAL = 3
"""With two, the interval of a mean is too wide to be useful: Student's t is 12.7 at 95 %."""


@dataclass(frozen=True)
class TrialValues:
    """One block of one workload, as a point. Rounds and blocks count from 1.

    ``position`` is its chronological index among the workload's blocks. ``void`` is the void reason.
    """

    position: int
    round: int
    block: int
    void: str | None


@dataclass(frozen=True)
class ValuePoint:
    """One arm's value in one block, or its ratio to the baseline's."""

    trial: TrialValues
    value: float


@dataclass(frozen=True)
class ArmSeries:
    """One arm's values over the blocks of a workload."""

    variant: str
    points: tuple[ValuePoint, ...]


@dataclass(frozen=True)
class SeriesEstimate:
    """A variant's geometric mean over the rounds that count, with its t interval at the design's level.

    ``bounds`` is None if fewer than three rounds count, or all are equal. For amounts that are 0 in some
    block, ``mean`` is the arithmetic mean, without bounds.
    """

    mean: float
    bounds: tuple[float, float] | None
    rounds: int


def blocks_of(experiment: Experiment, workload: str) -> tuple[tuple[TrialValues, Block], ...]:
    """Return a workload's blocks in chronological order."""
    found = sorted(
        (block for block in experiment.blocks if block.workload == workload),
        key=lambda block: (block.round, block.started_ns, block.index),
    )
    return tuple(
        (TrialValues(position, block.round + 1, block.index + 1, block.void), block)
        for position, block in enumerate(found)
    )


def ratios(
    experiment: Experiment, workload: str, metric: str, variant: str, baseline: str
) -> tuple[ValuePoint, ...]:
    """Return variant/baseline per block, for the blocks in which both were measured."""
    points = []
    for trial, block in blocks_of(experiment, workload):
        above, below = (value_in(block, name, metric) or 0.0 for name in (variant, baseline))
        if above > 0 and below > 0:
            void = block.void_for(variant, baseline)
            points.append(ValuePoint(replace(trial, void=void), above / below))
    return tuple(points)


def arm_series(experiment: Experiment, workload: str, metric: str) -> tuple[ArmSeries, ...]:
    """Return every arm's values per block; arms in the experiment's order."""
    blocks = blocks_of(experiment, workload)
    return tuple(
        ArmSeries(
            variant.name,
            tuple(
                ValuePoint(replace(trial, void=block.void_for(variant.name)), value)
                for trial, block in blocks
                if (value := value_in(block, variant.name, metric)) is not None
            ),
        )
        for variant in experiment.variants
    )


def typical(experiment: Experiment, workload: str, metric: str, variant: str) -> float | None:
    """Return the geometric mean over the blocks that count, the scale of effects; None without values."""
    values = [
        value
        for _, block in blocks_of(experiment, workload)
        if not block.void_for(variant)
        and (value := value_in(block, variant, metric)) is not None
        and value > 0
    ]
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def means(experiment: Experiment, workload: str, metric: str) -> dict[str, float | None]:
    """Return every variant's mean of a metric over its valid blocks; None if it has none."""
    found: dict[str, float | None] = {}
    for arm in arm_series(experiment, workload, metric):
        values = [point.value for point in arm.points if point.trial.void is None]
        found[arm.variant] = fmean(values) if values else None
    return found


def both(experiment: Experiment, verdict: Verdict) -> tuple[float, float] | None:
    """Return the typical values of a verdict's baseline and variant; None if one is missing."""
    at = (experiment, verdict.workload, verdict.metric)
    before, after = typical(*at, verdict.baseline), typical(*at, verdict.variant)
    return None if before is None or after is None else (before, after)


def estimates(experiment: Experiment, workload: str, metric: str) -> dict[str, SeriesEstimate]:
    """Return every variant's mean over the rounds that count; variants without one are left out."""
    found = {}
    for arm in arm_series(experiment, workload, metric):
        rounds: dict[int, list[float]] = {}
        for point in arm.points:
            if point.trial.void is None:
                rounds.setdefault(point.trial.round, []).append(point.value)
        if rounds:
            found[arm.variant] = _estimate(list(rounds.values()), experiment.design.level)
    return found


def _estimate(rounds: Sequence[Sequence[float]], level: float) -> SeriesEstimate:
    if any(value <= 0 for values in rounds for value in values):
        return SeriesEstimate(fmean(map(fmean, rounds)), None, len(rounds))
    sample = Sample.of([[math.log(value) for value in values] for values in rounds])
    mean = math.exp(fmean(sample.round_means))
    spread = max(sample.round_means) - min(sample.round_means)
    if sample.rounds < ROUNDS_FOR_AN_INTERVAL or spread < nested.RESOLUTION:
        return SeriesEstimate(mean, None, sample.rounds)
    estimated = nested.estimate(sample)
    bounds = nested.ratio_interval(estimated, float(nested.critical_t(estimated, level)), level)
    return SeriesEstimate(mean, (bounds.low, bounds.high), sample.rounds)


def metrics_of(experiment: Experiment, workload: str) -> tuple[str, ...]:
    """Return the metrics that any arm has in any block, in the order of first appearance."""
    return tuple(
        dict.fromkeys(
            metric
            for _, block in blocks_of(experiment, workload)
            for arm in block.arms
            for metric in arm.values
        )
    )


def value_in(block: Block, variant: str, metric: str) -> float | None:
    """Return an arm's value in a block; None if it is missing or not finite."""
    value = next((arm.values.get(metric) for arm in block.arms if arm.variant == variant), None)
    return value if value is not None and math.isfinite(value) else None


def variants_of(experiment: Experiment) -> tuple[str, ...]:
    """Return the names of all variants, the baseline first."""
    names = [variant.name for variant in experiment.variants]
    return tuple(sorted(names, key=lambda name: name != experiment.baseline))
