"""A grid for the terminal: a table per load, a row per cell, a column per variant. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.measure.verdicts.scaling import scaling_curves
from pgdyno.measure.verdicts.sharing_cost import sharing_costs
from pgdyno.measure.verdicts.transaction_split import transaction_splits
from pgdyno.measure.view.wording import effect_text, half_width, legend, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import NOTHING
from pgdyno.report.elements.terminal import DECISION_STYLES, PlainTable, plain_text
from pgdyno.studies.grids.degree_settings import what_to_set
from pgdyno.studies.grids.grid_tables import Load, compared_variants, gaps, loads, verdicts_on
from pgdyno.studies.grids.scaling import level_table, sentences
from pgdyno.studies.grids.shared_tables import sharing
from pgdyno.studies.grids.transaction_split import split_sentences, split_table


def grid_tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield curves, splits of time, and per load throughput relative to the baseline and missing cells."""
    yield from _curves(experiment)
    yield from _splits(experiment)
    found = loads(experiment) if verdicts_on(experiment) else ()
    level = numbers.share(experiment.design.level)
    for load in found:
        words = f"throughput against {experiment.baseline}, ± half of the {level} interval's width"
        yield plain_text(f"\n{load.name}: {words}", "bold")
        yield _table(experiment, load)
        for gap in gaps(experiment, load):
            yield plain_text(gap, "dim")
    if found:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")


def _curves(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield throughput by level, the cost of shared tables, and the settings to choose."""
    for one in scaling_curves(experiment):
        yield plain_text(f"\n{one.load}, {numbers.size(one.database_bytes)} of data", "bold")
        for sentence in sentences(one):
            yield plain_text(sentence)
        yield PlainTable(level_table(one))
    for number, cost in enumerate(map(sharing, sharing_costs(experiment))):
        yield plain_text(f"\n{cost.table.caption}", "bold")
        if number == 0:
            yield plain_text(cost.meaning)
        for sentence in cost.sentences:
            yield plain_text(sentence)
        yield PlainTable(cost.table)
    if found := what_to_set(experiment):
        yield plain_text("\nWhat to set", "bold")
        for line in (*found.sentences, *found.statements):
            yield plain_text(line)


def _splits(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the parts of a transaction's time if suitable loads were measured."""
    for one in transaction_splits(experiment):
        shown = split_table(one)
        yield plain_text(f"\n{shown.caption}", "bold")
        yield PlainTable(shown)
        for sentence in split_sentences(one):
            yield plain_text(sentence)


def _table(experiment: Experiment, load: Load) -> Table:
    verdicts, variants = verdicts_on(experiment), compared_variants(experiment)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("database", no_wrap=True)
    table.add_column(load.unit, justify="right", no_wrap=True)
    for name in variants:
        table.add_column(plain_text(name), justify="right")
    size_before = None
    for (size, level), workload in load.workloads.items():
        database = "" if size == size_before else numbers.size(size)
        cells = [_gain(verdicts.get((workload, name))) for name in variants]
        table.add_row(plain_text(database), str(level), *cells)
        size_before = size
    return table


def _gain(verdict: Verdict | None) -> Text:
    """Return change, symbol and interval; a narrow column can only wrap before the interval."""
    if verdict is None or verdict.effect is None:
        return plain_text(NOTHING)
    change = effect_text(verdict).replace(numbers.SPACE, "")
    width = half_width(verdict)
    return Text.assemble(
        (f"{change}{numbers.SPACE}{symbol(verdict.decision)}", DECISION_STYLES[verdict.decision]),
        *([(f" {width}", "dim")] if width else []),
    )
