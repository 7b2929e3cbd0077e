"""The tables over all steps for the terminal: ten steps fit 80 columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.measure.view.words import legend, metric_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import NOTHING, StyledCell
from pgdyno.report.elements.terminal import DECISION_STYLES, plain_text
from pgdyno.studies.steps.rqps import (
    MISSED,
    Result,
    StepResults,
    background_table,
    relative_cell,
    step_results,
    variants_of,
)

_THOUSANDS, _MILLIONS = 99_999.5, 999_500.0
_FINE, _FINEST = 0.0995, 0.0005  # half-widths from here on are shown without decimals, and with one


def step_tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the rates, those relative to the baseline, and the background rates."""
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
        yield _heading(f"Relative {title}, {experiment.baseline} = 1; below, half of the interval's width")
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


def half_width(verdict: Verdict) -> str:
    """Return half the width of a verdict's interval: ``±0.03%``, ``±1.2%``, ``±14%``: columns are narrow."""
    if verdict.interval is None:
        return ""
    width = verdict.interval.half_width
    digits = 0 if width >= _FINE else 1 if width >= _FINEST else 2
    return f"±{numbers.share(width, digits)}".replace(numbers.SPACE, "")


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


def compact(rate: float) -> str:
    """Return a rate in at most six characters: ``9,080``, ``239k``, ``1.04M``."""
    if rate < _THOUSANDS:
        return numbers.number(rate)
    return f"{rate / 1e3:.0f}k" if rate < _MILLIONS else f"{rate / 1e6:.2f}M"


def _figure(cell: StyledCell) -> Text:
    """Return a cell; that a rate was missed is said, not only shown by a style."""
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
