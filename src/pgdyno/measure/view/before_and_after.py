"""The accelerator's study in the form of the published table: throughput before and after. Pure.

A column is a workload. Rows are the default before, the whole plan after, between them the plan's layers, one
more in each row, and the gain of the whole. Beside the published one, it has its interval and its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.measure.view.series import typical
from pgdyno.measure.view.words import effect_text, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.terms import PLAN
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns

_STUDY = "accelerator-study"
_BEFORE_AND_AFTER = 2  # rows
_LESSON = "Between before and after, each row has one layer of the plan more than the row above it."


def before_and_after(experiment: Experiment) -> Table | None:
    """Return the table; None of other studies, and as long as nothing was measured."""
    if experiment.name != _STUDY or not experiment.blocks:
        return None
    names = [variant.name for variant in experiment.variants]
    rates = ((_row_name(name, experiment), *_rates(experiment, name)) for name in names)
    return Table(
        f"Transactions per second before and after, and the gain over {experiment.baseline}",
        (Column(""), *columns(*experiment.workloads, numbers_from=0)),
        (*rates, *_gains(experiment)),
        lesson=_LESSON if len(names) > _BEFORE_AND_AFTER else "",
    )


def _row_name(name: str, experiment: Experiment) -> str:
    if name == experiment.baseline:
        return f"before: {name}"
    return f"after: {name}" if name == PLAN else name


def _rates(experiment: Experiment, variant: str) -> Iterator[str]:
    for workload in experiment.workloads:
        rate = typical(experiment, workload, THROUGHPUT, variant)
        yield NOTHING if rate is None else numbers.number(rate)


def _gains(experiment: Experiment) -> Iterator[tuple[str, ...]]:
    """Yield the gain of the whole plan, its interval and its verdict, each of all workloads."""
    found = {v.workload: v for v in experiment.verdicts if (v.metric, v.variant) == (THROUGHPUT, PLAN)}
    known = [found.get(workload) for workload in experiment.workloads]
    if any(known):
        yield ("gain", *map(_gain, known))
        yield (f"{numbers.share(experiment.design.level)} interval", *map(_interval, known))
        yield ("verdict", *map(_verdict, known))


def _gain(verdict: Verdict | None) -> str:
    return NOTHING if verdict is None or verdict.effect is None else effect_text(verdict)


def _interval(verdict: Verdict | None) -> str:
    return NOTHING if verdict is None or verdict.interval is None else numbers.interval(verdict.interval)


def _verdict(verdict: Verdict | None) -> str:
    return NOTHING if verdict is None else f"{symbol(verdict.decision)} {verdict.decision}"
