"""Rates and latencies of an open loop: transactions arrive whether or not earlier ones have ended. Pure.

rate = share x mean throughput of the baseline in a closed loop
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from pgdyno.base.facts import Unknown
from pgdyno.measure.verdicts.analysis import log_ratios
from pgdyno.measure.verdicts.failures import is_any_shown
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import P50, P95, P99, TAIL_MEAN, THROUGHPUT
from pgdyno.model.experiments.verdict import AtLoad, LatencyAtLoad
from pgdyno.stats.nested import mean_interval

LATENCIES = (P50, P95, TAIL_MEAN, P99)


def rates_at_load(experiment: Experiment, share: float) -> dict[str, float]:
    """Return the rate of each workload in transactions/s, except where the baseline has no throughput."""
    capacity = {
        name: _mean(experiment, name, THROUGHPUT, experiment.baseline) for name in experiment.workloads
    }
    return {name: share * tps for name, tps in capacity.items() if tps is not None}


def latencies_at_load(
    experiment: Experiment, plan: str, rates: Mapping[str, float], share: float
) -> tuple[AtLoad, ...]:
    """Return the latencies of an experiment at these rates; without workloads in which no block counts."""
    return tuple(
        AtLoad(workload, rate, share, experiment.id, found)
        for workload, rate in rates.items()
        if (found := tuple(one for name in LATENCIES if (one := _latency(experiment, workload, name, plan))))
    )


def _latency(experiment: Experiment, workload: str, metric: str, plan: str) -> LatencyAtLoad | None:
    baseline_ms, plan_ms = (_mean(experiment, workload, metric, arm) for arm in (experiment.baseline, plan))
    if baseline_ms is None or plan_ms is None:
        return None
    ratios = log_ratios(experiment.blocks, workload, metric, plan, experiment.baseline)
    ratio = mean_interval(
        [of_round for _, of_round in sorted(ratios.items())],
        experiment.design.level,
        bias=experiment.design.bias,
    )
    if is_any_shown(experiment.blocks, workload, (plan, experiment.baseline)):
        return LatencyAtLoad(metric, baseline_ms, plan_ms, None)
    return LatencyAtLoad(metric, baseline_ms, plan_ms, None if isinstance(ratio, Unknown) else ratio)


def _mean(experiment: Experiment, workload: str, metric: str, variant: str) -> float | None:
    """Return an arm's mean over the blocks that count; None if no block counts."""
    values = [
        arm.values[metric]
        for block in experiment.blocks
        if block.workload == workload and not block.void_for(variant)
        for arm in block.arms
        if arm.variant == variant and metric in arm.values
    ]
    return fmean(values) if values else None
