"""Views of the Insert Benchmark: its part of pages, terminal output and JSON documents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.base.document import Json, to_document
from pgdyno.measure.view.series import variants_of
from pgdyno.measure.view.wording import compact, half_width, legend, metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import NOTHING, StyledCell
from pgdyno.report.elements.terminal import DECISION_STYLES, plain_text
from pgdyno.studies.bundled.insert_benchmark.rate_tables import (
    MISSED,
    Result,
    StepResults,
    background_table,
    relative_cell,
    step_results,
)
from pgdyno.studies.bundled.insert_benchmark.step_view import overview, step_views

NAME = "steps"


def page(experiment: Experiment) -> Mapping[str, object]:
    """Return the template values of the overview."""
    return {"overview": overview(experiment)}


def by_workload(experiment: Experiment) -> Mapping[str, object]:
    """Return the view of each step."""
    return step_views(experiment)


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
    steps = step_results(experiment)
    if not steps:
        return
    yield _heading("Rate, per second: rows in l.*, queries in q*" if _is_mixed(steps) else "Rate, per second")
    names = variants_of(experiment)
    rates = [(name, [_rate(step.results[order]) for step in steps]) for order, name in enumerate(names)]
    yield _table([step.name for step in steps], rates)
    metrics = dict.fromkeys([THROUGHPUT, *(verdict.metric for verdict in experiment.verdicts)])
    for metric in metrics if len(experiment.variants) > 1 else ():
        title = "rate (rQPS)" if metric == THROUGHPUT else metric_of(metric, "operations").title
        yield _heading(f"Relative {title}, {experiment.baseline} = 1; below, ± half of the interval's width")
        yield _relative(experiment, steps, metric)
    if len(experiment.variants) > 1:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")
    background = background_table(experiment)
    if background:
        yield _heading("Background rate, share of its target")
        yield _table(
            [head.text for head in background.heads],
            [(name, [_figure(cell) for cell in cells]) for name, cells in background.rows],
        )


def _is_mixed(steps: tuple[StepResults, ...]) -> bool:
    return len({step.operation for step in steps}) > 1


def _relative(experiment: Experiment, steps: tuple[StepResults, ...], metric: str) -> Table:
    verdicts = {(v.workload, v.variant): v for v in experiment.verdicts if v.metric == metric}
    rows = [
        (name, [_ratio(step, step.results[order], verdicts.get((step.workload, name))) for step in steps])
        for order, name in enumerate(variants_of(experiment))
        if order
    ]
    return _table([step.name for step in steps], rows)


def _ratio(step: StepResults, result: Result, verdict: Verdict | None) -> Text:
    cell = relative_cell(step, result, verdict)
    if cell.style == MISSED or verdict is None or verdict.effect is None:
        return _figure(cell)
    style = DECISION_STYLES[verdict.decision]
    return Text.assemble((cell.text, style), "\n", (half_width(verdict), "dim"))


def _rate(result: Result) -> Text:
    text = NOTHING if result.rate is None else compact(result.rate)
    return _figure(StyledCell(text, *([MISSED] * 2 if result.missed is not None else ["", ""])))


def _figure(cell: StyledCell) -> Text:
    """Return a cell; a missed rate is shown by a word as well as by a style."""
    is_missed = cell.style == MISSED
    note = f"\n{MISSED}" if is_missed and cell.note == MISSED else ""
    return plain_text(cell.text.replace(numbers.SPACE, "") + note, "dim italic" if is_missed else "")


def _heading(words: str) -> Text:
    return plain_text(f"\n{words}", "bold")


def _table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Text]]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", overflow="fold")
    for head in heads:
        table.add_column(plain_text(head), justify="right", no_wrap=True)
    for name, cells in rows:
        table.add_row(plain_text(name), *cells)
    return table
