"""The Insert Benchmark's part of pages, terminal output and JSON documents. Pure.

Figures keep the benchmark's names and order. ``published.py`` documents their computation and the differences
from the original.

Source: github.com/mdcallag/mytools, bench/ibench/etl.sh; legend: mdcallag.github.io/ibench-results.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import RenderableType
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.base.facts import Json, to_document
from pgdyno.measure.view.series import means, variants_of
from pgdyno.measure.view.wording import SIGNS, SINGULARS, Sign, legend, metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import SERVER_CPU, THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.charts.rates import RateStrip, rate_chart
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import NOTHING, Figure, StyledCell, StyledTable, Table, columns, figure
from pgdyno.report.elements.terminal import decided_text, plain_text, rich_table
from pgdyno.studies.bundled.insert_benchmark.rate_tables import (
    MISSED,
    Result,
    StepResults,
    background_table,
    rate_table,
    relative_cell,
    relative_table,
    step_results,
)
from pgdyno.studies.bundled.insert_benchmark.step_tables import (
    Recorded,
    client_table,
    counter_table,
    mean_of,
    metric_table,
    of_variant,
    rate_strips,
    recorded,
    stall_list,
    stall_table,
    wait_table,
)

NAME = "steps"
FIELDS: Mapping[str, str] = {
    "ips": "rows inserted per second",
    "qps": "queries per second",
    "rps": "reads from storage per second",
    "rmbps": "MiB read per second",
    "wps": "writes to storage per second",
    "wmbps": "MiB written per second",
    "rpq": "reads per operation",
    "rkbpq": "KiB read per operation",
    "wpi": "writes per inserted row",
    "wkbpi": "KiB written per inserted row",
    "csps": "context switches per second, whole machine",
    "cpups": "CPU busy in %, whole machine",
    "cspq": "context switches per operation, whole machine",
    "cpupq": "CPU µs per operation, whole machine, including the client and all other processes",
    "dbgb1": "database in GiB",
    "dbgb2": "data directory in GiB, WAL included",
    "rss": "resident memory of the largest server process in GiB",
    "maxop": "longest response in s",
    "p50": "median of the rates of single seconds",
    "p99": "rate reached in 99 % of the seconds",
}
"""All except the 21st, ``tag``, which is the variant's name."""
_FIELD_BEFORE_SERVER_CPU = "cpupq"


@dataclass(frozen=True)
class Overview:
    """The overview of an experiment with steps: rates, and other verdicts."""

    tables: tuple[StyledTable, ...]
    others: tuple[StyledTable, ...]  # relative tables of the other metrics with verdicts
    signs: tuple[Sign, ...]


@dataclass(frozen=True)
class StepView:
    """One step: a summary line, then its details."""

    name: str
    rate: str  # the baseline's
    cells: tuple[tuple[str, StyledCell], ...]  # by variant: relative to the baseline
    rates: Figure | None
    tables: tuple[Table, ...]
    stalls: tuple[str, ...]
    published: Table | None


def page(experiment: Experiment) -> Mapping[str, object]:
    """Return the tables over all steps, for the page's template; None if no workload is a step."""
    return {"overview": _overview(experiment)}


def _overview(experiment: Experiment) -> Overview | None:
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


def by_workload(experiment: Experiment) -> Mapping[str, object]:
    """Return the view of each step."""
    return {step.workload: _view(experiment, step) for step in step_results(experiment)}


def document(experiment: Experiment) -> Json:
    """Return every step with each variant's results; empty if no workload is a step."""
    return to_document(
        [
            {
                "workload": step.workload,
                "step": step.name,
                "operation": step.operation,
                "unit": step.unit,
                "background_target_rows_per_s": step.target_rows_per_s,
                "variants": [_step_result(experiment, one) for one in step.results],
            }
            for step in step_results(experiment)
        ]
    )


def _step_result(experiment: Experiment, one: Result) -> dict[str, object]:
    """Return one variant in one step, without a ratio if it or the baseline missed its background rate."""
    verdict, interval = one.verdict, one.verdict.interval if one.verdict else None
    return {
        "variant": one.variant,
        "is_baseline": one.variant == experiment.baseline,
        "rate": one.rate,
        "relative": verdict.effect if verdict else None,
        "interval": None if interval is None else [interval.low, interval.high],
        "verdict": verdict.decision.value if verdict else None,
        "background_share": one.background_share,
        "is_missed": one.missed is not None,
        "missed_passes": one.missed.passes if one.missed else 0,
        "lowest_background_share": one.missed.lowest if one.missed else None,
        "is_compared": verdict is not None and verdict.effect is not None,
    }


def tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield absolute rates, rates relative to the baseline, and background rates."""
    steps, is_compared = step_results(experiment), len(experiment.variants) > 1
    if not steps:
        return
    is_mixed = len({step.operation for step in steps}) > 1
    yield from _table(f"Rate, per second{': rows in l.*, queries in q*' * is_mixed}", rate_table(experiment))
    for metric in dict.fromkeys([THROUGHPUT, *(verdict.metric for verdict in experiment.verdicts)]):
        if is_compared:
            title = "rate (rQPS)" if metric == THROUGHPUT else metric_of(metric, "operations").title
            words = f"Relative {title}, {experiment.baseline} = 1; below, ± half of the interval's width"
            yield from _table(words, relative_table(experiment, metric), first=1)
    if is_compared:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")
    if background := background_table(experiment):
        yield from _table("Background rate, share of its target", background)


def _table(title: str, shown: StyledTable, first: int = 0) -> Iterator[RenderableType]:
    """Yield a table without the rows before ``first``."""
    heads = columns("", *(head.text for head in shown.heads), numbers_from=1)
    rows = ((plain_text(name), *map(_cell, cells)) for name, cells in shown.rows[first:])
    yield plain_text(f"\n{title}", "bold")
    yield rich_table(heads, rows, gap=1, unbroken=range(1, len(heads)), overflow="fold")


def _cell(cell: StyledCell) -> Text:
    """Return a cell; a missed rate is shown by a word as well as by a style."""
    text = (cell.narrow or cell.text).replace(numbers.SPACE, "")
    if cell.style in {"", MISSED}:
        note = f"\n{MISSED}" if cell.note == MISSED else ""
        return plain_text(text + note, "dim italic" if cell.style else "")
    return decided_text(text, Decision(cell.style), f"\n{cell.narrow_note}")


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
    """Return the rate over time; None for a step of few transactions."""
    strips = rate_strips(experiment, records)
    if not strips:
        return None
    title = f"{step.unit[:1].upper()}{step.unit[1:]} over time"
    rows = _rate_rows(strips)
    caption = Caption(
        f"rates-{experiment.workloads.index(step.workload)}",
        f"{step.name}: {title}",
        f"{len(strips)} variants, one line per round",
    )
    titles = ("Variant", "Round", "Mean", "Slowest interval", "Fastest interval")
    table = Table(f"{step.unit} of every round", columns(*titles, numbers_from=1), rows)
    return figure(partial(rate_chart, caption, strips), table, title=title)


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


def published_table(
    records: Sequence[Recorded],
    variants: Sequence[str],
    server_cpu: Mapping[str, float | None],
    operation: str,
) -> Table | None:
    """Return the published fields of every variant; None if no record has any.

    ``server_cpu`` is the CPU time in µs per operation of each variant's server only. It is shown below the
    published figure, which covers the whole machine.
    """
    if not any(one.record.published for one in records):
        return None
    rows = []
    for name, words in FIELDS.items():
        means = [_mean(records, variant, name) for variant in variants]
        rows.append((name, *(_number(mean) for mean in means), words))
        if name == _FIELD_BEFORE_SERVER_CPU:
            own = [_number(server_cpu.get(variant)) for variant in variants]
            rows.append(("(server only)", *own, f"CPU µs per {operation}, server processes only"))
    return Table(
        "The benchmark's published figures, means over the rounds; the tag is the variant",
        columns("Field", *variants, "Meaning", numbers_from=1, words_from=1 + len(variants)),
        tuple(rows),
    )


def _mean(records: Sequence[Recorded], variant: str, name: str) -> float | None:
    return mean_of(of_variant(records, variant), lambda record: record.published.get(name))


def _number(value: float | None) -> str:
    return NOTHING if value is None else numbers.number(value)
