"""Effects adjusted for steal time, in addition to verdicts: tables for page and terminal. Pure."""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.measure.verdicts.steal_adjustment import AdjustedEffect, Adjustment, adjustments
from pgdyno.measure.view.wording import effect_text, metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns


def adjustment_tables(experiment: Experiment) -> tuple[Table, ...]:
    """Return the adjusted effects of each workload measured in alternating trials."""
    level = numbers.share(experiment.design.level)
    figures = columns("Unadjusted", "Adjusted", f"{level} interval", numbers_from=0)
    return tuple(
        Table(
            f"{_stolen(found)}. Adjusted for stolen time: effects at equal stolen time; the verdicts use "
            "the unadjusted effects",
            (Column("Variant"), Column("Metric"), *figures),
            tuple(_row(experiment, found.workload, one) for one in found.effects),
        )
        for found in adjustments(experiment)
        if found.effects
    )


def refusals(experiment: Experiment) -> tuple[str, ...]:
    """Return why effects are not adjusted, a sentence for each workload with varying steal time."""
    return tuple(
        f"{_stolen(found)}. No effect is adjusted for it: {found.reason}"
        for found in adjustments(experiment)
        if found.reason
    )


def _stolen(found: Adjustment) -> str:
    return (
        f"{found.workload}: the hypervisor took between {numbers.share(found.lowest, 1)} and "
        f"{numbers.share(found.highest, 1)} of the CPU time of {found.trials} trials"
    )


def _row(experiment: Experiment, workload: str, one: AdjustedEffect) -> tuple[str, ...]:
    unadjusted = (
        effect_text(verdict)
        for verdict in experiment.verdicts
        if (verdict.workload, verdict.metric, verdict.variant) == (workload, one.metric, one.variant)
    )
    bounds = one.interval
    return (
        one.variant,
        metric_of(one.metric).title,
        next(unadjusted, NOTHING),
        numbers.change_within(bounds.point, bounds.low, bounds.high),
        numbers.interval(bounds),
    )
