"""Terminal output of a TPC-H-like workload: times, best degrees, and differing plans. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.measure.view.series import variants_of
from pgdyno.measure.view.wording import half_width, legend, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.report.elements.tables import NOTHING
from pgdyno.report.elements.terminal import DECISION_STYLES, PlainTable, plain_text
from pgdyno.studies.bundled.tpch.degree_table import best_degrees
from pgdyno.studies.bundled.tpch.tables import (
    QueryLine,
    Relative,
    lines,
    plan_comparisons,
    sentence_on,
    time_text,
    title_of,
    unit_of_runs,
)

_ENDLESS = 10_000  # columns
_WIDTH_OF_NAMES = 30  # characters of all names together, at most: otherwise letters replace them


def tpch_tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the times, both runs, and the differences of plans; nothing for other workloads."""
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
    yield _Tables(experiment, [line for line in found if line.is_time])
    yield plain_text("\nBoth runs, per hour: higher is better", "bold")
    yield _Tables(experiment, [line for line in found if not line.is_time])
    if is_compared:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")
        yield from _degrees(experiment)
        yield from _plans(experiment)


def labels(experiment: Experiment) -> dict[str, str]:
    """Return the variants' names by column title: the name, or a letter if the names are too long."""
    names = variants_of(experiment)
    if sum(map(len, names)) <= _WIDTH_OF_NAMES:
        return {name: name for name in names}
    return {
        ascii_uppercase[place] if place < 26 else str(place + 1): name for place, name in enumerate(names)
    }


def _plans(experiment: Experiment) -> Iterator[Text]:
    if not (experiment.tpch and experiment.tpch.plans):  # interrupted before plans were recorded
        return
    differing = plan_comparisons(experiment)
    yield plain_text("\nPlans", "bold")
    if not differing:
        yield plain_text("all variants have the same plans")
    label_of = {name: label for label, name in labels(experiment).items()}
    for one in differing:
        yield plain_text(f"{one.query}, {label_of[one.variant]}: {', '.join(one.kinds)}")
    if differing:
        yield plain_text("the report has them line by line", "dim")


def _degrees(experiment: Experiment) -> Iterator[RenderableType]:
    for found in best_degrees(experiment):
        yield plain_text(f"\n{found.title}", "bold")
        if found.narrow_table is not None:
            yield plain_text(found.narrow_table.caption)
            yield PlainTable(found.narrow_table)
        for sentence in found.sentences:
            yield plain_text(sentence)
        if found.statements:
            yield plain_text(f"{found.to_set}:")
        for statement in found.statements:
            yield plain_text(f"  {statement}")


@dataclass(frozen=True)
class _Tables:
    """Lines as a table; if not all variants fit side by side, as several tables, each with the baseline."""

    experiment: Experiment
    found: list[QueryLine]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the smallest number of tables that fit the width."""
        others = range(1, len(variants_of(self.experiment)))
        endless = options.update(max_width=_ENDLESS)
        for count in range(len(others), 0, -1):
            tables = [self._table(others[at : at + count]) for at in range(0, len(others), count)]
            if max(console.measure(one, options=endless).maximum for one in tables) <= options.max_width:
                break
        else:  # a single variant, or a terminal too narrow for two
            tables = [self._table([one]) for one in others] or [self._table([])]
        for place, table in enumerate(tables):
            if place:
                yield ""
            yield table

    def _table(self, others: Sequence[int]) -> Table:
        """Return a table of the baseline and the variants at the places ``others``, counted from 1."""
        names = [*labels(self.experiment)]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("", no_wrap=True)
        table.add_column(plain_text(names[0]), justify="right", no_wrap=True)
        for place in others:
            table.add_column(plain_text(names[place]), justify="right", no_wrap=True)
            table.add_column("relative", justify="right", no_wrap=True)
        for line in self.found:
            name = title_of(line) if line.is_time else f"{title_of(line)} ({unit_of_runs(line.name)})"
            table.add_row(plain_text(name), *_cells(line, others))
        return table


def _cells(line: QueryLine, others: Sequence[int]) -> Iterator[Text]:
    shown = time_text if line.is_time else numbers.number

    def figure(place: int) -> Text:
        estimate = line.figures[place]
        return plain_text(NOTHING if estimate is None else shown(estimate.mean))

    yield figure(0)
    for place in others:
        yield figure(place)
        yield _ratio(line.relative[place - 1])


def _ratio(one: Relative) -> Text:
    if one.ratio is None or one.verdict is None:
        return plain_text(NOTHING)
    shown = f"{one.ratio:.2f} {symbol(one.verdict.decision)}"
    return Text.assemble(
        (shown, DECISION_STYLES[one.verdict.decision]), (f" {half_width(one.verdict):>6}", "dim")
    )
