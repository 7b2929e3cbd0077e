"""The times of a workload like TPC-H's, and plans that differ, for the terminal: a row per query. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.model.experiment import Experiment
from pgdyno.report import numbers
from pgdyno.report.rqps import variants_of
from pgdyno.report.rqps_text import half_width
from pgdyno.report.tables import NOTHING
from pgdyno.report.terminal import DECISION_STYLES, plain_text
from pgdyno.report.tpch import (
    Line,
    Relative,
    lines,
    plan_comparisons,
    sentence_on,
    time_text,
    title_of,
    unit_of_runs,
)
from pgdyno.report.words import legend, symbol

_WIDTH_OF_NAMES = 30  # characters of all names together that leave room for their columns


def tpch_tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the times, both runs, and how plans differ; nothing where the workload is another one."""
    if experiment.tpch is None:
        return
    yield plain_text(sentence_on(experiment.tpch), "bold")
    found, is_compared = lines(experiment), len(experiment.variants) > 1
    for label, name in labels(experiment).items():
        if label != name:
            yield plain_text(f"{label}: {name}")
    relative = (
        f"; relative to {next(iter(labels(experiment)))} = 1, ± half of the interval's width"
        if is_compared
        else ""
    )
    yield plain_text(f"\nTimes, geometric mean over the rounds{relative}", "bold")
    yield _table(experiment, [line for line in found if line.is_time])
    yield plain_text("\nBoth runs, per hour: higher is better", "bold")
    yield _table(experiment, [line for line in found if not line.is_time])
    if is_compared:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")
        yield from _plans(experiment)


def labels(experiment: Experiment) -> dict[str, str]:
    """Return the variants' names by what their columns are called: letters where the names are too long."""
    names = variants_of(experiment)
    if sum(map(len, names)) <= _WIDTH_OF_NAMES:
        return {name: name for name in names}
    return {
        ascii_uppercase[place] if place < 26 else str(place + 1): name for place, name in enumerate(names)
    }


def _plans(experiment: Experiment) -> Iterator[Text]:
    differing = plan_comparisons(experiment)
    yield plain_text("\nPlans", "bold")
    if not differing:
        yield plain_text("all variants have the same plans")
    label_of = {name: label for label, name in labels(experiment).items()}
    for one in differing:
        yield plain_text(f"{one.query}, {label_of[one.variant]}: {', '.join(one.kinds)}")
    if differing:
        yield plain_text("the report has them line by line", "dim")


def _table(experiment: Experiment, found: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for place, label in enumerate(labels(experiment)):
        table.add_column(plain_text(label), justify="right", no_wrap=True)
        if place:
            table.add_column("relative", justify="right", no_wrap=True)
    for line in found:
        name = title_of(line) if line.is_time else f"{title_of(line)} ({unit_of_runs(line.name)})"
        table.add_row(plain_text(name), *_cells(line))
    return table


def _cells(line: Line) -> Iterator[Text]:
    shown = time_text if line.is_time else numbers.number
    for place, estimate in enumerate(line.figures):
        yield plain_text(NOTHING if estimate is None else shown(estimate.mean))
        if place:
            yield _ratio(line.relative[place - 1])


def _ratio(one: Relative) -> Text:
    if one.ratio is None or one.verdict is None:
        return plain_text(NOTHING)
    shown = f"{one.ratio:.2f} {symbol(one.verdict.decision)}"
    return Text.assemble(
        (shown, DECISION_STYLES[one.verdict.decision]), (f" {half_width(one.verdict):>6}", "dim")
    )
