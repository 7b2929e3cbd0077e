"""The page's part on steps: summary tables, and a fold per step with its observations. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.view.words import SIGNS, SINGULARS, Sign
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import SERVER_CPU, THROUGHPUT
from pgdyno.report.charts.rates import RateStrip, rate_chart
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import Figure, StyledCell, StyledTable, Table, columns, figure
from pgdyno.studies.steps.published import published_table
from pgdyno.studies.steps.rqps import (
    StepResults,
    background_table,
    rate_table,
    relative_cell,
    relative_table,
    step_results,
    variants_of,
)
from pgdyno.studies.steps.step_series import Recorded, rate_strips, recorded
from pgdyno.studies.steps.step_tables import (
    client_table,
    counter_table,
    means,
    metric_table,
    stall_list,
    stall_table,
    wait_table,
)


@dataclass(frozen=True)
class Overview:
    """The overview of an experiment with steps: rates, and other verdicts."""

    tables: tuple[StyledTable, ...]
    others: tuple[StyledTable, ...]  # relative tables of the other metrics with verdicts
    signs: tuple[Sign, ...]


@dataclass(frozen=True)
class StepView:
    """One step: a line that sums it up, then its evidence."""

    name: str
    rate: str  # the baseline's
    cells: tuple[tuple[str, StyledCell], ...]  # by variant: relative to the baseline
    rates: Figure | None
    tables: tuple[Table, ...]
    stalls: tuple[str, ...]
    published: Table | None


def overview(experiment: Experiment) -> Overview | None:
    """Return the tables over all steps; None where no workload is a step."""
    steps = step_results(experiment)
    if not steps:
        return None
    background = background_table(experiment)
    judged = dict.fromkeys(v.metric for v in experiment.verdicts if v.metric != THROUGHPUT)
    is_compared = len(experiment.variants) > 1
    return Overview(
        tables=(
            *((relative_table(experiment),) if is_compared else ()),
            rate_table(experiment),
            *((background,) if background else ()),
        ),
        others=tuple(relative_table(experiment, metric) for metric in judged),
        signs=SIGNS if is_compared else (),
    )


def step_views(experiment: Experiment) -> dict[str, StepView]:
    """Return the view of every step, by workload."""
    return {step.workload: _view(experiment, step) for step in step_results(experiment)}


def _view(experiment: Experiment, step: StepResults) -> StepView:
    records, variants = recorded(experiment, step.workload), variants_of(experiment)
    operation = SINGULARS.get(step.operation, step.operation)
    tables = (
        metric_table(experiment, step.workload, records),
        client_table(records, variants),
        wait_table(records, variants),
        counter_table(records, variants, operation),
        stall_table(records, variants),
    )
    server_cpu = means(experiment, step.workload, SERVER_CPU)
    baseline = step.results[0]
    return StepView(
        name=step.name,
        rate="" if baseline.rate is None else f"{numbers.number(baseline.rate)}{numbers.SPACE}{step.unit}",
        cells=tuple((one.variant, relative_cell(step, one, one.verdict)) for one in step.results[1:]),
        rates=_rates_figure(experiment, step, records),
        tables=tuple(table for table in tables if table),
        stalls=stall_list(records),
        published=published_table(records, variants, server_cpu, operation),
    )


def _rates_figure(experiment: Experiment, step: StepResults, records: Sequence[Recorded]) -> Figure | None:
    """Return the rate over time; None for a step that is over in a few transactions."""
    strips = rate_strips(experiment, records)
    if not strips:
        return None
    title = f"{step.unit[:1].upper()}{step.unit[1:]} over the step's time"
    rows = _rate_rows(strips)
    caption = Caption(
        f"rates-{experiment.workloads.index(step.workload)}",
        f"{step.name}: {title}",
        f"{len(strips)} variants, a line per round",
    )
    titles = ("Variant", "Round", "Mean", "Slowest interval", "Fastest interval")
    table = Table(f"{step.unit} of every round", columns(*titles, numbers_from=1), rows)
    return figure(partial(_draw, caption, strips), table, title=title)


def _rate_rows(strips: Sequence[RateStrip]) -> tuple[tuple[str, ...], ...]:
    rows = []
    for strip in strips:
        for one in strip.lines:
            rates = [point.rate for point in one.points]
            length_s = sum(point.length_s for point in one.points)
            mean = sum(point.rate * point.length_s for point in one.points) / length_s
            figures = (mean, min(rates), max(rates))
            rows.append((strip.variant, str(one.round), *map(numbers.number, figures)))
    return tuple(rows)


def _draw(caption: Caption, strips: Sequence[RateStrip], width: float) -> Markup:
    return rate_chart(caption, strips, width=width)
