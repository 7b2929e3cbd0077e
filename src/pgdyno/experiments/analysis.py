"""From blocks to verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.model.experiment import Block, Design
from pgdyno.model.metric import METRICS, Metric
from pgdyno.model.verdict import Verdict
from pgdyno.stats.decision import adjust, decide


def verdict_metrics() -> tuple[Metric, ...]:
    """Return the metrics that get verdicts; the first is the primary one."""
    return tuple(metric for metric in METRICS.values() if metric.has_verdict)


def log_ratios(
    blocks: Sequence[Block], workload: str, metric: str, variant: str, baseline: str
) -> dict[int, list[float]]:
    """Return ln(variant / baseline) by round, without void blocks and arms that lack the metric."""
    series: dict[int, list[float]] = {}
    for block in blocks:
        if block.workload != workload or block.void:
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
    """Return the verdict for every workload, metric and variant but the baseline, corrected by Holm."""
    verdicts = [
        decide(
            [
                ratios
                for _, ratios in sorted(log_ratios(blocks, workload, metric.name, variant, baseline).items())
            ],
            workload=workload,
            metric=metric,
            variant=variant,
            baseline=baseline,
            level=design.level,
            equivalence_margin=design.equivalence_margin,
            power=design.power,
            stopping=design.stopping,
            void_blocks=sum(1 for block in blocks if block.workload == workload and block.void),
        )
        for workload in workloads
        for variant in variants
        if variant != baseline
        for metric in verdict_metrics()
    ]
    return tuple(adjust(verdicts))
