"""Compute verdicts from blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.measure.verdicts.failures import REQUIRED_BACKGROUND_SHARE, missed_rate, withhold
from pgdyno.measure.verdicts.seat_effects import SeatEffects, seat_effects
from pgdyno.model.experiments.experiment import Block, Design, Experiment
from pgdyno.model.experiments.metric import METRICS, Metric
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.stats.decision import adjust, decide
from pgdyno.stats.nested import MeanEstimate, estimate, with_bias
from pgdyno.stats.sample import Sample


def verdict_metrics() -> tuple[Metric, ...]:
    """Return the metrics that get verdicts; the first is the primary one."""
    return tuple(metric for metric in METRICS.values() if metric.has_verdict)


def log_ratios(
    blocks: Sequence[Block], workload: str, metric: str, variant: str, baseline: str
) -> dict[int, list[float]]:
    """Return ln(variant / baseline) by round, of non-void blocks in which both arms have the metric."""
    series: dict[int, list[float]] = {}
    for block in blocks:
        if block.workload != workload or block.void_for(variant, baseline):
            continue
        values = {arm.variant: arm.values.get(metric, 0.0) for arm in block.arms}
        if values.get(variant, 0.0) > 0 and values.get(baseline, 0.0) > 0:
            series.setdefault(block.round, []).append(math.log(values[variant] / values[baseline]))
    return series


def analyse(
    blocks: Sequence[Block],
    *,
    workloads: Sequence[str],
    variants: Sequence[str],
    baseline: str,
    design: Design,
) -> tuple[Verdict, ...]:
    """Return the verdict for every workload, metric and variant except the baseline, corrected by Holm.

    No verdict favours a variant with too many failed transactions.
    """
    judged = judge(blocks, workloads=workloads, variants=variants, baseline=baseline, design=design)
    return withhold(adjust(judged), blocks)


def judge(
    blocks: Sequence[Block],
    *,
    workloads: Sequence[str],
    variants: Sequence[str],
    baseline: str,
    design: Design,
) -> list[Verdict]:
    """Return the same verdicts without correction for multiple comparisons.

    A metric that no block of a workload has gets no verdict, unless it is the primary one: a single execution
    has no percentile and no CPU time.
    """
    measured = {(block.workload, name) for block in blocks for arm in block.arms for name in arm.values}
    primary = verdict_metrics()[0]
    by_seat = {
        (workload, metric): seat_effects(blocks, workload, metric.name, variants, design)
        for workload in workloads
        for metric in verdict_metrics()
        if metric is primary or (workload, metric.name) in measured
    }
    return [
        _verdict(blocks, workload, metric, (variant, baseline), design, by_seat[workload, metric])
        for workload in workloads
        for variant in variants
        if variant != baseline
        for metric in verdict_metrics()
        if (workload, metric) in by_seat
    ]


def mean_effect(experiment: Experiment, workload: str, metric: str, variant: str) -> MeanEstimate:
    """Return the mean log-ratio, with its standard error, behind a verdict with an interval."""
    names = [one.name for one in experiment.variants]
    by_seat = seat_effects(experiment.blocks, workload, metric, names, experiment.design)
    arms = (variant, experiment.baseline)
    sample = Sample.of(_ratios(experiment.blocks, workload, metric, arms, by_seat))
    return with_bias(estimate(sample), experiment.design.bias)


def _ratios(
    blocks: Sequence[Block], workload: str, metric: str, arms: tuple[str, str], by_seat: SeatEffects | None
) -> list[list[float]]:
    """Return the log-ratios of a variant to its baseline by round, without seat effects."""
    series = log_ratios(blocks, workload, metric, *arms)
    if by_seat is not None and series:
        series = by_seat.removed(series, *arms)
    return [of_round for _, of_round in sorted(series.items())]


def _verdict(
    blocks: Sequence[Block],
    workload: str,
    metric: Metric,
    arms: tuple[str, str],
    design: Design,
    by_seat: SeatEffects | None,
) -> Verdict:
    """Return one verdict; without a decision if either arm missed its background rate."""
    variant, baseline = arms
    missed = {name: missed_rate(blocks, workload, name) for name in arms}
    reasons = [
        f"{name} missed the background rate in {how.passes} of {how.of_passes} "
        f"{'pass' if how.of_passes == 1 else 'passes'}: {numbers.share(how.lowest, 0)} of it at worst"
        for name, how in missed.items()
        if how is not None
    ]
    verdict = decide(
        [] if reasons else _ratios(blocks, workload, metric.name, arms, by_seat),
        workload=workload,
        metric=metric,
        variant=variant,
        baseline=baseline,
        level=design.level,
        equivalence_margin=design.equivalence_margin,
        power=design.power,
        stopping=design.stopping,
        bias=design.bias,
        void_blocks=sum(1 for block in blocks if block.workload == workload and block.void_for(*arms)),
    )
    if not reasons:
        return verdict
    return replace(
        verdict, reason=f"{'; '.join(reasons)} ({numbers.share(REQUIRED_BACKGROUND_SHARE)} is required)"
    )
