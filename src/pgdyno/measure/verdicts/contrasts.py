"""Contrasts of arms: weighted sums of log metrics, within the blocks in which all arms count. Pure.

    symbol  meaning                                                          unit
    m_a     metric of arm a in a block                                       any
    s_a     effect of arm a's seat in that round (seat_effects)              1
    c_a     weight of arm a; the weights of a contrast sum to 0              1

    contrast = exp( mean over rounds and blocks of Σ c_a (ln m_a - s_a) )

A pair of arms has a constant bias throughout an experiment (``Design.bias``), with half of its variance from
each arm. The variance of a contrast's bias is b² Σ c_a² / 2.

All returned contrasts of one call use the same blocks. Identities between contrasts therefore hold exactly
between their point estimates: the parts of a sum add up. A contrast is left out if significantly more
transactions failed on one of its arms than on another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pgdyno.base.facts import Unknown
from pgdyno.measure.verdicts.failures import is_any_shown
from pgdyno.measure.verdicts.seat_effects import SeatEffects, seat_effects, widened
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.nested import mean_interval

Weights = Mapping[str, float]
"""Weights of the arms in a contrast, by arm name."""


def contrast_intervals(
    experiment: Experiment,
    workload: str,
    contrasts: Mapping[str, Weights],
    *,
    metric: str = THROUGHPUT,
    level: float | None = None,
) -> dict[str, Interval]:
    """Return the ratio of each contrast with its interval, at ``level`` or the design's level.

    Without contrasts of arms that failed transactions make incomparable; empty if there are too few
    rounds for an interval.
    """
    comparable = {
        name: weights
        for name, weights in contrasts.items()
        if not is_any_shown(experiment.blocks, workload, list(weights))
    }
    series, is_seated = _series(experiment, workload, comparable, metric)
    wanted = experiment.design.level if level is None else level
    return _intervals(series, wanted, _biases(experiment, comparable), is_seated=is_seated)


def _series(
    experiment: Experiment, workload: str, contrasts: Mapping[str, Weights], metric: str
) -> tuple[dict[str, dict[int, list[float]]], bool]:
    """Return the values of each contrast by round, and whether seat effects were removed from them."""
    names = list(dict.fromkeys(name for weights in contrasts.values() for name in weights))
    arms = [one.name for one in experiment.variants]
    by_seat = seat_effects(experiment.blocks, workload, metric, arms, experiment.design)
    series: dict[str, dict[int, list[float]]] = {name: {} for name in contrasts}
    for block in experiment.blocks:
        logs = dict(_logs(block, workload, metric, names, by_seat))
        if len(logs) == len(names):
            for name, weights in contrasts.items():
                value = sum(weight * logs[arm] for arm, weight in weights.items())
                series[name].setdefault(block.round, []).append(value)
    return series, by_seat is not None


def _biases(experiment: Experiment, contrasts: Mapping[str, Weights]) -> dict[str, float]:
    return {
        name: experiment.design.bias * math.hypot(*weights.values()) / math.sqrt(2)
        for name, weights in contrasts.items()
    }


def _intervals(
    series: Mapping[str, dict[int, list[float]]],
    level: float,
    biases: Mapping[str, float],
    *,
    is_seated: bool,
) -> dict[str, Interval]:
    found = {
        name: mean_interval([*(widened(one) if is_seated else one).values()], level, bias=biases[name])
        for name, one in series.items()
    }
    known = {name: one for name, one in found.items() if not isinstance(one, Unknown)}
    return known if len(known) == len(series) else {}


def _logs(
    block: Block, workload: str, metric: str, names: list[str], by_seat: SeatEffects | None
) -> Iterator[tuple[str, float]]:
    """Yield the log of each arm's metric in a block; nothing unless all arms count in it."""
    if block.workload != workload or block.void_for(*names):
        return
    for arm in block.arms:
        value = arm.values.get(metric, 0.0)
        if arm.variant in names and value > 0:
            seat = 0.0 if by_seat is None else by_seat.of(block.round, arm.variant)
            yield arm.variant, math.log(value) - seat
