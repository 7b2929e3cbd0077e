"""Contrasts of arms within blocks: sums of their log-throughputs with given coefficients. Pure.

symbol  meaning                                     unit
T_a     an arm's value in a block                   the metric's
c_a     its coefficient; they add up to 0           1

contrast   exp(sum of c_a ln T_a), a mean over blocks nested in rounds
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.facts import Unknown
from pgdyno.stats.nested import mean_interval


def contrast_intervals(
    experiment: Experiment,
    workload: str,
    contrasts: Mapping[str, Mapping[str, float]],
    metric: str = THROUGHPUT,
) -> dict[str, Interval]:
    """Return the interval of every contrast for which enough blocks count, by the contrasts' names."""
    arms = tuple(dict.fromkeys(arm for contrast in contrasts.values() for arm in contrast))
    rounds: dict[str, dict[int, list[float]]] = {}
    for block in experiment.blocks:
        values = _logs(block, workload, arms, metric)
        for name, contrast in contrasts.items() if values else ():
            summed = sum(coefficient * values[arm] for arm, coefficient in contrast.items())
            rounds.setdefault(name, {}).setdefault(block.round, []).append(summed)
    found = {
        name: mean_interval([one for _, one in sorted(series.items())], experiment.design.level)
        for name, series in rounds.items()
    }
    return {name: one for name, one in found.items() if not isinstance(one, Unknown)}


def _logs(block: Block, workload: str, arms: tuple[str, ...], metric: str) -> dict[str, float]:
    """Return the logarithms of a block in which all these arms count; none of any other."""
    values = {arm.variant: arm.values.get(metric, 0.0) for arm in block.arms}
    if block.workload != workload or block.void_for(*arms):
        return {}
    if not all(values.get(arm, 0.0) > 0 for arm in arms):
        return {}
    return {arm: math.log(values[arm]) for arm in arms}
