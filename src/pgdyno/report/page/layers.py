"""The figure of the effect of each layer of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from pgdyno.experiments.verdicts.layer_effects import LayerEffects, layer_effects
from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.svg import Caption
from pgdyno.report.charts.waterfall import Fall, Step, waterfall
from pgdyno.report.elements.tables import Column, Figure, Table, figure
from pgdyno.report.plain.layers_text import OVERLAP, WHOLE, overlap_remark, remark


def layers_figure(experiment: Experiment) -> Figure | None:
    """Return the waterfall of every workload; None if no layer was left out, or too few rounds count."""
    falls = [Fall(one.workload, tuple(_steps(one))) for one in layer_effects(experiment)]
    if not falls:
        return None
    rows = tuple(
        (fall.workload, step.label, _effect(step.effect), numbers.interval(step.effect), step.remark)
        for fall in falls
        for step in fall.steps
    )
    caption = Caption(
        "layers",
        "From the baseline to the whole plan, layer by layer",
        "; ".join(f"{workload}, {label}: {effect} ({bounds})" for workload, label, effect, bounds, _ in rows),
    )
    level = numbers.share(experiment.design.level)
    titles = (Column("Effect", is_number=True), Column(f"{level} interval", is_number=True))
    table = Table(
        "Throughput of the plan against the plan without each layer",
        (Column("Workload"), Column("Layer"), *titles, Column("")),
        rows,
    )

    def draw(width: float) -> Markup:
        return waterfall(caption, falls, width=width)

    return figure(draw, table, title="The worth of each layer")


def _steps(effects: LayerEffects) -> Iterator[Step]:
    reached = 1.0
    for name, interval in effects.layers.items():
        yield Step(name, remark(interval), reached, interval, "better" if interval.point >= 1 else "worse")
        reached *= interval.point
    yield Step(OVERLAP, overlap_remark(effects.overlap), reached, effects.overlap, "equivalent")
    yield Step(WHOLE, remark(effects.whole), 1.0, effects.whole, "whole")


def _effect(interval: Interval) -> str:
    return numbers.change_within(interval.point, interval.low, interval.high)
