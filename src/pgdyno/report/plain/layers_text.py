"""The effect of each layer in words: the whole plan against the plan without it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.experiments.verdicts.layer_effects import LayerEffects, layer_effects, layers_left_out
from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval

OVERLAP, WHOLE = "overlap", "whole plan"
NEED_NOT_ADD_UP = (
    "The effects of layers need not add up to that of the whole plan: a gain that either of two brings is "
    "lost only if both are left out, and one that takes both is lost with either. The overlap is the "
    "difference."
)


def layers_text(experiment: Experiment) -> str:
    """Return a line for each layer and workload; nothing if no layer was left out."""
    if not layers_left_out(experiment):
        return ""
    found = layer_effects(experiment)
    if not found:
        return "The worth of each layer is not known: too few rounds count.\n"
    lines = [line for one in found for line in _lines(one)]
    head = "The worth of each layer: throughput of the plan against the plan without it:"
    return "\n".join([head, *lines, NEED_NOT_ADD_UP]) + "\n"


def remark(interval: Interval) -> str:
    """Describe the uncertainty of an interval; nothing if it shows a gain."""
    if interval.high < 1:
        return "costs"
    return "may be nothing" if interval.low <= 1 else ""


def overlap_remark(interval: Interval) -> str:
    """Describe the overlap: the difference between the layers' sum and the whole plan."""
    if interval.low > 1:
        return "brought by more than one layer alike"
    return "counted in more than one layer" if interval.high < 1 else "may be nothing"


def _lines(effects: LayerEffects) -> Iterator[str]:
    width = max(map(len, (*effects.layers, WHOLE)))
    rows = [(name, interval, remark(interval)) for name, interval in effects.layers.items()]
    rows += [
        (OVERLAP, effects.overlap, overlap_remark(effects.overlap)),
        (WHOLE, effects.whole, remark(effects.whole)),
    ]
    for place, (name, interval, words) in enumerate(rows):
        effect = numbers.change_within(interval.point, interval.low, interval.high)
        workload = effects.workload if place == 0 else ""
        line = f"  {workload:22}  {name:{width}}  {effect} ({numbers.interval(interval)})"
        yield f"{line}, {words}" if words else line
