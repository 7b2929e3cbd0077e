"""Tables of a TPC-H-like workload: times of every query, both runs, and differing plans. Pure.

Verdicts are on executions per second; a time relative to the baseline is the inverse of their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.measure.view.series import SeriesEstimate, estimates, variants_of
from pgdyno.measure.view.wording import bounds_text, half_width, step_names, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.step_record import DISCLAIMER, TPCH_RUNS, TpchFacts
from pgdyno.model.experiments.verdict import Interval, Verdict
from pgdyno.postgres.plan_document import kinds_of_difference, plan_difference
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable


@dataclass(frozen=True)
class Relative:
    """A variant relative to the baseline; None if not measured."""

    variant: str
    ratio: float | None
    interval: Interval | None
    verdict: Verdict | None


@dataclass(frozen=True)
class QueryLine:
    """One query or refresh function, or one of the two runs; by variant, the baseline first.

    ``figures`` are seconds, or executions per hour for the runs; None if no round is valid. ``relative`` are
    ratios to the baseline: below 1 is faster for times, above 1 for the runs.
    """

    name: str
    is_time: bool
    figures: tuple[SeriesEstimate | None, ...]
    relative: tuple[Relative, ...]  # of all but the baseline


@dataclass(frozen=True)
class PlanComparison:
    """The difference of a variant's plan of a query from the baseline's, in words and line by line."""

    query: str
    variant: str
    kinds: tuple[str, ...]
    lines: tuple[str, ...]


def run_table(experiment: Experiment, facts: TpchFacts) -> StyledTable:
    """Return the executions per hour of both runs."""
    caption = (
        "Per hour. Power run: 3600 seconds divided by the geometric mean of its 24 times. Throughput run: "
        f"all queries of its {facts.streams} streams, divided by the time from the start of the first to "
        "the end of the last. Higher is better"
    )
    return _table(experiment, "Both runs", caption, is_time=False)


def time_table(experiment: Experiment) -> StyledTable:
    """Return the times of all queries and refresh functions."""
    level = numbers.share(experiment.design.level)
    relative = f"; relative to {experiment.baseline} = 1" if len(experiment.variants) > 1 else ""
    caption = (
        f"Times of single executions, geometric mean over the rounds, with its {level} interval{relative}"
    )
    return _table(experiment, "Queries", caption, is_time=True)


def sentence_on(facts: TpchFacts) -> str:
    """Return the disclaimer, with scale and number of streams."""
    return f"{DISCLAIMER}. Scale {facts.scale}, {facts.streams} streams in the throughput run."


def lines(experiment: Experiment) -> tuple[QueryLine, ...]:
    """Return all queries, refresh functions and runs, in the experiment's order."""
    return tuple(_line(experiment, workload, name) for workload, name in step_names(experiment).items())


def plan_comparisons(experiment: Experiment) -> tuple[PlanComparison, ...]:
    """Return all plans that differ from the baseline's."""
    plans = experiment.tpch.plans if experiment.tpch else {}
    before = plans.get(experiment.baseline, {})
    return tuple(
        PlanComparison(query, variant, kinds_of_difference(before[query], after), changed)
        for variant in variants_of(experiment)[1:]
        for query, after in plans.get(variant, {}).items()
        if query in before and (changed := plan_difference(before[query], after))
    )


def time_text(seconds: float) -> str:
    """Return a time with three significant digits: ``12.3 ms``, ``1.23 s``."""
    if seconds < 1:
        return f"{numbers.number(seconds * 1000)}{numbers.SPACE}ms"
    return f"{numbers.number(seconds)}{numbers.SPACE}s"


def _line(experiment: Experiment, workload: str, name: str) -> QueryLine:
    rates, variants = estimates(experiment, workload, THROUGHPUT), variants_of(experiment)
    verdicts = {
        verdict.variant: verdict
        for verdict in experiment.verdicts
        if (verdict.workload, verdict.metric) == (workload, THROUGHPUT)
    }
    is_time = name not in TPCH_RUNS
    figure = _time if is_time else _per_hour
    return QueryLine(
        name,
        is_time,
        tuple(figure(rates[variant]) if variant in rates else None for variant in variants),
        tuple(_relative(variant, verdicts.get(variant), is_time=is_time) for variant in variants[1:]),
    )


def _time(rate: SeriesEstimate) -> SeriesEstimate:
    bounds = rate.bounds and (1 / rate.bounds[1], 1 / rate.bounds[0])
    return SeriesEstimate(1 / rate.mean, bounds, rate.rounds)


def _per_hour(rate: SeriesEstimate) -> SeriesEstimate:
    bounds = rate.bounds and (rate.bounds[0] * 3600, rate.bounds[1] * 3600)
    return SeriesEstimate(rate.mean * 3600, bounds, rate.rounds)


def _relative(variant: str, verdict: Verdict | None, *, is_time: bool) -> Relative:
    if verdict is None or verdict.effect is None:
        return Relative(variant, None, None, verdict)
    interval = verdict.interval
    if not is_time:
        return Relative(variant, verdict.effect, interval, verdict)
    inverse = interval and Interval(1 / interval.high, 1 / interval.point, 1 / interval.low, interval.level)
    return Relative(variant, 1 / verdict.effect, inverse, verdict)


def _table(experiment: Experiment, title: str, caption: str, *, is_time: bool) -> StyledTable:
    first, *others = variants_of(experiment)
    heads = (first, *(title for variant in others for title in (variant, "relative")))
    found = [line for line in lines(experiment) if line.is_time is is_time]
    rows = tuple((TPCH_RUNS.get(line.name, line.name), _cells(line)) for line in found)
    corner = "Query" if is_time and found else "Run"
    return StyledTable(title, caption, tuple(map(StyledCell, heads)), rows, corner)


def _cells(line: QueryLine) -> tuple[StyledCell, ...]:
    first, *others = (_figure(line, estimate) for estimate in line.figures)
    pairs = zip(others, map(_ratio, line.relative), strict=True)
    return (first, *(cell for pair in pairs for cell in pair))


def _figure(line: QueryLine, estimate: SeriesEstimate | None) -> StyledCell:
    if estimate is None:
        return StyledCell(NOTHING)
    shown = time_text if line.is_time else numbers.number
    bounds = "" if estimate.bounds is None else " – ".join(shown(bound) for bound in estimate.bounds)
    return StyledCell(shown(estimate.mean), bounds)


def _ratio(one: Relative) -> StyledCell:
    if one.ratio is None or one.verdict is None:
        return StyledCell(NOTHING)
    return StyledCell(
        f"{one.ratio:.2f} {symbol(one.verdict.decision)}",
        bounds_text(one.interval) if one.interval else "no interval",
        str(one.verdict.decision),
        narrow_note=f" {half_width(one.verdict):>6}",
    )
