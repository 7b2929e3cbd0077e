"""A grid for the terminal: a table per load, a row per cell, a column per variant. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import RenderableType
from rich.text import Text

from pgdyno.base import numbers
from pgdyno.measure.verdicts.scaling import scaling_curves
from pgdyno.measure.verdicts.transaction_split import sharing_costs, transaction_splits
from pgdyno.measure.view.wording import effect_text, half_width, legend, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import NOTHING, Section, columns
from pgdyno.report.elements.terminal import decided_text, plain_text, rich_table, section_parts
from pgdyno.studies.grids.findings import SHARING, scaling, sharing, split_time, what_to_set
from pgdyno.studies.grids.grid_tables import Load, compared_variants, gaps, loads, verdicts_on


def grid_tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield curves, splits of time, and per load throughput relative to the baseline and missing cells."""
    for section in _sections(experiment):
        yield from section_parts(section)
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


def _sections(experiment: Experiment) -> Iterator[Section]:
    """Yield throughput by level, the cost of shared tables, the settings to choose, and splits of time."""
    for one in scaling_curves(experiment):
        yield scaling(one, f"{one.load}, {numbers.size(one.database_bytes)} of data")
    for place, cost in enumerate(map(sharing, sharing_costs(experiment))):
        yield cost if place else replace(cost, sentences=(SHARING, *cost.sentences))
    if found := what_to_set(experiment):
        yield found
    yield from map(split_time, transaction_splits(experiment))


def _table(experiment: Experiment, load: Load) -> RenderableType:
    verdicts, variants = verdicts_on(experiment), compared_variants(experiment)
    rows: list[tuple[str | Text, ...]] = []
    size_before = None
    for (size, level), workload in load.workloads.items():
        database = "" if size == size_before else numbers.size(size)
        rows.append((database, str(level), *(_gain(verdicts.get((workload, name))) for name in variants)))
        size_before = size
    return rich_table(columns("database", load.unit, *variants, numbers_from=1), rows, unbroken=(0, 1))


def _gain(verdict: Verdict | None) -> Text:
    """Return change, symbol and interval; a narrow column can only wrap before the interval."""
    if verdict is None or verdict.effect is None:
        return plain_text(NOTHING)
    change = effect_text(verdict).replace(numbers.SPACE, "")
    width = half_width(verdict)
    shown = f"{change}{numbers.SPACE}{symbol(verdict.decision)}"
    return decided_text(shown, verdict.decision, f" {width}" if width else "")
