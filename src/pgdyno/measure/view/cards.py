"""The first screen: the results per workload, in plain words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import counted
from pgdyno.measure.view.series import arm_series, both, typical
from pgdyno.measure.view.wording import Statement, effect_text, metric_of, primary_metric, state, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.plan import PLAN
from pgdyno.report.elements.tables import NOTHING, Table, columns

_STUDY = "accelerator-study"
_BEFORE_AND_AFTER = 2  # rows
_LESSON = "Between before and after, each row has one layer of the plan more than the row above it."


@dataclass(frozen=True)
class CardLine:
    """One verdict on a card."""

    decision: str
    symbol: str
    metric: str
    statement: Statement
    values: str  # "1,234 → 1,471 transactions/s", or empty


@dataclass(frozen=True)
class Entry:
    """One variant on a card: the leading metric large, the others below."""

    variant: str
    leading: CardLine
    others: tuple[CardLine, ...]


@dataclass(frozen=True)
class Measured:
    """A variant's figures without a verdict: a single variant, or an interrupted experiment."""

    variant: str
    value: str
    unit: str
    support: str


@dataclass(frozen=True)
class Card:
    """One workload: its verdicts, or figures without a verdict (``alone``)."""

    workload: str
    entries: tuple[Entry, ...]
    alone: tuple[Measured, ...]

    @property
    def is_compact(self) -> bool:
        """Whether each variant gets a single line, because there are several; the chart has the rest."""
        return len(self.entries) > 2


def cards(experiment: Experiment) -> tuple[Card, ...]:
    """Return a card per workload, in the experiment's order; steps and cells have tables instead."""
    judged = dict.fromkeys([*experiment.workloads, *(v.workload for v in experiment.verdicts)])
    return tuple(
        Card(workload, _entries(experiment, workload), measured(experiment, workload))
        for workload in judged
        if workload not in experiment.operations and workload not in experiment.cells
    )


def measured(experiment: Experiment, workload: str) -> tuple[Measured, ...]:
    """Return every variant's geometric mean throughput, with its range over the blocks that count."""
    metric = metric_of(THROUGHPUT, experiment.operation(workload))
    found = []
    for arm in arm_series(experiment, workload, metric.name):
        values = [point.value for point in arm.points if point.trial.void is None]
        mean = typical(experiment, workload, metric.name, arm.variant)
        if mean is not None:
            support = (
                f"geometric mean of {counted(len(values), 'block')}, "
                f"{numbers.number(min(values))} … {numbers.number(max(values))}"
            )
            found.append(Measured(arm.variant, numbers.number(mean), metric.unit, support))
    return tuple(found)


def _entries(experiment: Experiment, workload: str) -> tuple[Entry, ...]:
    verdicts = [verdict for verdict in experiment.verdicts if verdict.workload == workload]
    entries = []
    for variant in dict.fromkeys(verdict.variant for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.variant == variant]
        leading = primary_metric(own)
        lines = {verdict.metric: _line(experiment, verdict) for verdict in own}
        others = tuple(line for metric, line in lines.items() if metric != leading)
        entries.append(Entry(variant, lines[leading], others))
    return tuple(entries)


def _line(experiment: Experiment, verdict: Verdict) -> CardLine:
    metric, values = metric_of(verdict.metric), both(experiment, verdict)
    return CardLine(
        decision=str(verdict.decision),
        symbol=symbol(verdict.decision),
        metric=metric.title,
        statement=state(verdict, experiment.design.equivalence_margin),
        values=f"{numbers.number(values[0])} → {numbers.quantity(metric, values[1])}" if values else "",
    )


def before_and_after(experiment: Experiment) -> Table | None:
    """Return the accelerator study's published table; None for other studies, or without blocks.

    Columns are workloads. Rows are the default, then the plan with one more layer in each row up to the whole
    plan, then the gain of the whole with its interval and verdict.
    """
    if experiment.name != _STUDY or not experiment.blocks:
        return None
    names = [variant.name for variant in experiment.variants]
    titles = {experiment.baseline: f"before: {experiment.baseline}", PLAN: f"after: {PLAN}"}
    rates = ((titles.get(name, name), *_rates(experiment, name)) for name in names)
    return Table(
        f"Transactions per second before and after, and the gain over {experiment.baseline}",
        columns("", *experiment.workloads, numbers_from=1),
        (*rates, *_gains(experiment)),
        lesson=_LESSON if len(names) > _BEFORE_AND_AFTER else "",
    )


def _rates(experiment: Experiment, variant: str) -> Iterator[str]:
    for workload in experiment.workloads:
        rate = typical(experiment, workload, THROUGHPUT, variant)
        yield NOTHING if rate is None else numbers.number(rate)


def _gains(experiment: Experiment) -> Iterator[tuple[str, ...]]:
    """Yield rows with the gain of the whole plan, its interval and its verdict, by workload."""
    found = {v.workload: v for v in experiment.verdicts if (v.metric, v.variant) == (THROUGHPUT, PLAN)}
    known = [found.get(workload) for workload in experiment.workloads]
    if any(known):
        level = numbers.share(experiment.design.level)
        yield ("gain", *(effect_text(one) if one and one.effect is not None else NOTHING for one in known))
        yield (
            f"{level} interval",
            *(numbers.interval(one.interval) if one and one.interval else NOTHING for one in known),
        )
        yield ("verdict", *(f"{symbol(one.decision)} {one.decision}" if one else NOTHING for one in known))
