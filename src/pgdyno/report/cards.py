"""The first screen: per workload what was found, in plain words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.experiment import Experiment
from pgdyno.model.verdict import Verdict
from pgdyno.report import numbers
from pgdyno.report.series import typical
from pgdyno.report.words import Statement, metric_of, primary_metric, state, symbol


@dataclass(frozen=True)
class Line:
    """One verdict as it stands on a card."""

    decision: str
    symbol: str
    metric: str
    statement: Statement
    values: str  # "1,234 → 1,471 transactions/s", or empty


@dataclass(frozen=True)
class Entry:
    """One variant on a card: the leading metric large, the others below."""

    variant: str
    leading: Line
    others: tuple[Line, ...]


@dataclass(frozen=True)
class Card:
    """One workload. ``entries`` is empty when nothing was decided about it."""

    workload: str
    entries: tuple[Entry, ...]

    @property
    def is_compact(self) -> bool:
        """Whether there are so many variants that each gets a line; the chart below has the rest."""
        return len(self.entries) > 2


def cards(experiment: Experiment) -> tuple[Card, ...]:
    """Return a card per workload, in the experiment's order."""
    judged = dict.fromkeys([*experiment.workloads, *(v.workload for v in experiment.verdicts)])
    return tuple(Card(workload, _entries(experiment, workload)) for workload in judged)


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


def _line(experiment: Experiment, verdict: Verdict) -> Line:
    return Line(
        decision=str(verdict.decision),
        symbol=symbol(verdict.decision),
        metric=metric_of(verdict.metric).title,
        statement=state(verdict, experiment.design.equivalence_margin),
        values=_values(experiment, verdict),
    )


def _values(experiment: Experiment, verdict: Verdict) -> str:
    metric = metric_of(verdict.metric)
    before, after = (
        typical(experiment, verdict.workload, verdict.metric, arm)
        for arm in (verdict.baseline, verdict.variant)
    )
    if before is None or after is None:
        return ""
    return f"{numbers.number(before)} → {numbers.quantity(metric, after)}"
