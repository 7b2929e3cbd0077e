"""The effect of each layer: the whole plan compared with the plan without it.

Both are measured in the same blocks. Pure.

    symbol  meaning                                                          unit
    T_p     throughput with the whole plan                                   1/s
    T_0     throughput of the baseline                                       1/s
    T_-l    throughput with the plan without layer l                         1/s

    effect of l   T_p / T_-l
    whole         T_p / T_0
    overlap       whole / product of the effects of all layers

Effects of leaving one out need not multiply to the whole. What two layers bring alike is lost only if both
are left out: the overlap is above 1. What takes both of them is lost with either: it is below 1.
Each is a mean over log-ratios of blocks nested in rounds, so that the points multiply exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.facts import Unknown
from pgdyno.model.plans.plan import Layer
from pgdyno.model.plans.terms import PLAN, WITHOUT
from pgdyno.stats.nested import mean_interval

_WHOLE, _OVERLAP = "", "*"  # no layer is called so


@dataclass(frozen=True)
class LayerEffects:
    """The effects of a plan's layers on one workload: throughput ratios, intervals."""

    workload: str
    layers: Mapping[str, Interval]
    overlap: Interval
    whole: Interval


def layers_left_out(experiment: Experiment) -> list[str]:
    """Return the layers without which the plan was measured."""
    left_out = [one.name.removeprefix(WITHOUT) for one in experiment.variants if one.name.startswith(WITHOUT)]
    return [name for name in left_out if name in set(Layer)]


def layer_effects(experiment: Experiment) -> tuple[LayerEffects, ...]:
    """Return the effects on every workload with enough rounds; nothing if no layer was left out."""
    layers = layers_left_out(experiment)
    found = (_effects(experiment, workload, layers) for workload in experiment.workloads if layers)
    return tuple(one for one in found if one is not None)


def _effects(experiment: Experiment, workload: str, layers: list[str]) -> LayerEffects | None:
    rounds: dict[str, dict[int, list[float]]] = {}
    for block in experiment.blocks:
        if block.workload == workload:
            for name, log_ratio in _log_ratios(block, experiment.baseline, layers):
                rounds.setdefault(name, {}).setdefault(block.round, []).append(log_ratio)
    known = {
        name: mean_interval([of_round for _, of_round in sorted(series.items())], experiment.design.level)
        for name, series in rounds.items()
    }
    intervals = {name: one for name, one in known.items() if not isinstance(one, Unknown)}
    if len(intervals) < len(layers) + 2:
        return None
    whole, overlap = intervals.pop(_WHOLE), intervals.pop(_OVERLAP)
    return LayerEffects(workload, intervals, overlap, whole)


def _log_ratios(block: Block, baseline: str, layers: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the log-ratios of one block in which all arms count; none of any other."""
    names = [baseline, PLAN, *(f"{WITHOUT}{layer}" for layer in layers)]
    values = {arm.variant: arm.values.get(THROUGHPUT, 0.0) for arm in block.arms}
    if block.void_for(*names) or not all(values.get(name, 0.0) > 0 for name in names):
        return
    logs = {name: math.log(values[name]) for name in names}
    effects = {layer: logs[PLAN] - logs[f"{WITHOUT}{layer}"] for layer in layers}
    whole = logs[PLAN] - logs[baseline]
    yield from effects.items()
    yield _OVERLAP, whole - sum(effects.values())
    yield _WHOLE, whole
