"""Tables of a TPC-H-like workload: times of every query, both runs, and differing plans. Pure.

Verdicts are on executions per second; a time relative to the baseline is the inverse of their ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.measure.view.series import SeriesEstimate, estimates, variants_of
from pgdyno.measure.view.wording import bounds_text, step_names, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.tpch import DISCLAIMER, POWER_RUN, TPCH_RUNS, TpchFacts
from pgdyno.model.experiments.verdict import Interval, Verdict
from pgdyno.postgres.planner.query_plan import kinds_of_difference, plan_difference, shape
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable
from pgdyno.studies.bundled.tpch.degree_table import BestDegrees, best_degrees

_SECONDS_PER_HOUR = 3600


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


@dataclass(frozen=True)
class TpchView:
    """The page's part on a TPC-H-like workload."""

    disclaimer: str
    tables: tuple[StyledTable, ...]
    degrees: tuple[BestDegrees, ...]
    differences: tuple[PlanComparison, ...]
    plans: tuple[tuple[str, str], ...]  # the baseline's, by query


def tpch_view(experiment: Experiment) -> TpchView | None:
    """Return the page's part; None for other workloads."""
    facts = experiment.tpch
    if facts is None:
        return None
    found = lines(experiment)
    return TpchView(
        sentence_on(facts),
        (
            _table(
                experiment, "Both runs", _caption_of_runs(facts), [one for one in found if not one.is_time]
            ),
            _table(
                experiment, "Queries", _caption_of_times(experiment), [one for one in found if one.is_time]
            ),
        ),
        best_degrees(experiment),
        plan_comparisons(experiment),
        tuple(
            (query, "\n".join(shape(plan)))
            for query, plan in facts.plans.get(experiment.baseline, {}).items()
        ),
    )


def sentence_on(facts: TpchFacts) -> str:
    """Return the disclaimer, with scale and number of streams."""
    return f"{DISCLAIMER}. Scale {facts.scale}, {facts.streams} streams in the throughput run."


def lines(experiment: Experiment) -> tuple[QueryLine, ...]:
    """Return all queries, refresh functions and runs, in the experiment's order."""
    return tuple(_line(experiment, workload, name) for workload, name in step_names(experiment).items())


def plan_comparisons(experiment: Experiment) -> tuple[PlanComparison, ...]:
    """Return all plans that differ from the baseline's."""
    return tuple(_plan_comparisons(experiment))


def unit_of_runs(name: str) -> str:
    """Return the unit of one of the runs, for tables."""
    return "executions/h" if name == POWER_RUN else "queries/h"


def time_text(seconds: float) -> str:
    """Return a time with three significant digits: ``12.3 ms``, ``1.23 s``."""
    if seconds < 1:
        return f"{numbers.number(seconds * 1000)}{numbers.SPACE}ms"
    return f"{numbers.number(seconds)}{numbers.SPACE}s"


def title_of(line: QueryLine) -> str:
    """Return the title of a query or run."""
    return TPCH_RUNS.get(line.name, line.name)


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
    bounds = None if rate.bounds is None else (1 / rate.bounds[1], 1 / rate.bounds[0])
    return SeriesEstimate(1 / rate.mean, bounds, rate.rounds)


def _per_hour(rate: SeriesEstimate) -> SeriesEstimate:
    hour = _SECONDS_PER_HOUR
    bounds = None if rate.bounds is None else (rate.bounds[0] * hour, rate.bounds[1] * hour)
    return SeriesEstimate(rate.mean * hour, bounds, rate.rounds)


def _relative(variant: str, verdict: Verdict | None, *, is_time: bool) -> Relative:
    if verdict is None or verdict.effect is None:
        return Relative(variant, None, None, verdict)
    interval = verdict.interval
    if not is_time:
        return Relative(variant, verdict.effect, interval, verdict)
    inverse = interval and Interval(1 / interval.high, 1 / interval.point, 1 / interval.low, interval.level)
    return Relative(variant, 1 / verdict.effect, inverse, verdict)


def _plan_comparisons(experiment: Experiment) -> Iterator[PlanComparison]:
    plans = experiment.tpch.plans if experiment.tpch else {}
    before = plans.get(experiment.baseline, {})
    for variant in variants_of(experiment)[1:]:
        for query, after in plans.get(variant, {}).items():
            if query in before and (changed := plan_difference(before[query], after)):
                yield PlanComparison(query, variant, kinds_of_difference(before[query], after), changed)


def _caption_of_runs(facts: TpchFacts) -> str:
    return (
        "Per hour. Power run: 3600 seconds divided by the geometric mean of its 24 times. Throughput run: "
        f"all queries of its {facts.streams} streams, divided by the time from the start of the first to "
        "the end of the last. Higher is better"
    )


def _caption_of_times(experiment: Experiment) -> str:
    level = numbers.share(experiment.design.level)
    relative = f"; relative to {experiment.baseline} = 1" if len(experiment.variants) > 1 else ""
    return f"Times of single executions, geometric mean over the rounds, with its {level} interval{relative}"


def _table(experiment: Experiment, title: str, caption: str, found: list[QueryLine]) -> StyledTable:
    variants = variants_of(experiment)
    heads = [StyledCell(variants[0])]
    for variant in variants[1:]:
        heads += [StyledCell(variant), StyledCell("relative")]
    return StyledTable(
        title,
        caption,
        tuple(heads),
        tuple((title_of(line), _cells(line)) for line in found),
        corner="Query" if found and found[0].is_time else "Run",
    )


def _cells(line: QueryLine) -> tuple[StyledCell, ...]:
    first, *others = (_figure(line, estimate) for estimate in line.figures)
    cells = [first]
    for figure, relative in zip(others, line.relative, strict=True):
        cells += [figure, _ratio(relative)]
    return tuple(cells)


def _figure(line: QueryLine, estimate: SeriesEstimate | None) -> StyledCell:
    if estimate is None:
        return StyledCell(NOTHING)
    shown = time_text if line.is_time else numbers.number
    bounds = "" if estimate.bounds is None else " – ".join(shown(bound) for bound in estimate.bounds)
    return StyledCell(shown(estimate.mean), bounds)


def _ratio(one: Relative) -> StyledCell:
    if one.ratio is None or one.verdict is None:
        return StyledCell(NOTHING)
    bounds = bounds_text(one.interval) if one.interval else "no interval"
    return StyledCell(f"{one.ratio:.2f} {symbol(one.verdict.decision)}", bounds, str(one.verdict.decision))
