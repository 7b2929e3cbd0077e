"""An experiment's verdicts as tables for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.accelerate.view import at_load_table
from pgdyno.base import numbers
from pgdyno.measure.design.phase import phase_of
from pgdyno.measure.verdicts.durability import warnings
from pgdyno.measure.verdicts.scaling import shown_by_curves
from pgdyno.measure.verdicts.transaction_split import shown_by_splits
from pgdyno.measure.view.cards import before_and_after, measured
from pgdyno.measure.view.series import both
from pgdyno.measure.view.statements_table import statement_tables
from pgdyno.measure.view.void_blocks import adjustment_tables, failures_table, refusals
from pgdyno.measure.view.wording import (
    answers,
    emulation_warning,
    metric_of,
    patch_warnings,
    step_names,
    symbol,
    verdict_cells,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.report.elements.settings import unsafe_variants
from pgdyno.report.elements.tables import Table
from pgdyno.report.elements.terminal import DECISION_STYLES, PlainTable, plain_text
from pgdyno.studies.grids.grid_text import grid_tables
from pgdyno.studies.views import views
from pgdyno.workload.view import likeness_sentences

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_INDENT, _GAP = 2, 2  # characters
_LEAST_TITLE = 16  # characters; on a narrower terminal, figures are truncated


def verdict_table(experiment: Experiment) -> RenderableType:
    """Return the answer, warnings, and a table of all verdicts.

    Decisions are shown by words and symbols as well as by colour. Markup in names is not interpreted.
    """
    parts: list[RenderableType] = [plain_text(experiment.question, style="bold")]
    parts += [plain_text(warning, style="bold red") for warning in _warnings(experiment)]
    parts += [plain_text(sentence) for sentence in answers(experiment)]
    parts += [plain_text(f"{sentence}.") for sentence in likeness_sentences(experiment)]
    found = (failures_table(experiment), before_and_after(experiment))
    parts += _captioned(table for table in found if table and table.rows)
    parts += grid_tables(experiment)
    parts += [table for view in views() for table in view.tables(experiment)]
    if any(not _has_own_table(experiment, verdict.workload) for verdict in experiment.verdicts):
        parts += [plain_text(""), _table(experiment)]
    parts += _captioned(statement_tables(experiment))
    if not experiment.verdicts:
        parts += [plain_text(line) for line in _measured_lines(experiment)]
    at_load = at_load_table(experiment)
    parts += _captioned((*((at_load,) if at_load else ()), *adjustment_tables(experiment)))
    parts += [plain_text(f"{sentence}.", "dim") for sentence in refusals(experiment)]
    return Group(*parts, *_undecided(experiment))


def _captioned(tables: Iterable[Table]) -> Iterator[RenderableType]:
    for table in tables:
        yield from (plain_text(""), plain_text(f"{table.caption}."), PlainTable(table))
        if table.lesson:
            yield plain_text(table.lesson, "dim")


def _has_own_table(experiment: Experiment, workload: str) -> bool:
    return workload in experiment.operations or workload in experiment.cells


def _undecided(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield why comparisons are undecided, each reason once.

    Of steps and cells of a grid, which are many, only withheld verdicts are included: the others have an
    interval that includes no change.
    """
    reasons: dict[str, list[str]] = {}
    names = step_names(experiment)
    for verdict in _ordered(experiment):
        if verdict.decision is not Decision.INCONCLUSIVE:
            continue
        if verdict.is_withheld or not _has_own_table(experiment, verdict.workload):
            title = metric_of(verdict.metric, experiment.operations.get(verdict.workload)).title
            subject = f"{names.get(verdict.workload, verdict.workload)}, {verdict.variant}, {title}"
            reasons.setdefault(verdict.reason, []).append(subject)
    for reason, subjects in reasons.items():
        shown = subjects[0] if len(subjects) == 1 else f"{len(subjects)} comparisons"
        yield plain_text(f"{symbol(Decision.INCONCLUSIVE)} {shown}: {reason}", "dim")


def _measured_lines(experiment: Experiment) -> Iterator[str]:
    """Yield every variant's figures of workloads that no curve or split shows."""
    drawn = shown_by_curves(experiment) | shown_by_splits(experiment)
    for workload in (one for one in experiment.workloads if one not in drawn):
        if workload not in experiment.operations:
            for one in measured(experiment, workload):
                yield f"{workload}, {one.variant}: {one.value} {one.unit} ({one.support})"


def _warnings(experiment: Experiment) -> Iterator[str]:
    for variant in unsafe_variants(experiment):
        settings = ", ".join(variant.unsafe_settings)
        yield f"NOT DURABLE: {variant.name} can lose committed data in a crash ({settings})"
    yield from warnings(experiment)
    if (warning := emulation_warning(experiment)) is not None:
        yield warning
    yield from patch_warnings(experiment)
    if not experiment.is_complete:
        yield "INTERRUPTED: the experiment did not run to its planned end"


def _table(experiment: Experiment) -> _MetricsTable:
    """Return the table of verdicts on workloads without their own tables; steps and grid cells have these."""
    heads = ("before → after", "effect", f"{numbers.share(experiment.design.level)} interval", "verdict")
    verdicts = (v for v in _ordered(experiment) if not _has_own_table(experiment, v.workload))
    return _MetricsTable(heads, [_row(experiment, verdict) for verdict in verdicts])


def _row(experiment: Experiment, verdict: Verdict) -> _MetricRow:
    phase = phase_of(experiment, verdict.workload)
    headings = (verdict.workload,) if phase is None else (verdict.workload, f"({phase})")
    values = " → ".join(map(numbers.number, both(experiment, verdict) or ()))
    *figures, decision = (values, *verdict_cells(verdict))
    cells = (*map(plain_text, figures), plain_text(decision, DECISION_STYLES[verdict.decision]))
    return _MetricRow(headings, verdict.variant, _metric(verdict), cells)


def _metric(verdict: Verdict) -> Text:
    metric = metric_of(verdict.metric)
    unit = metric.unit.replace("transactions/s", "tps")
    return plain_text(f"{metric.title} ({unit})" if unit else metric.title)


def _ordered(experiment: Experiment) -> list[Verdict]:
    """Return the verdicts by workload, variant and metric, in their order of definition."""
    workloads = [*experiment.workloads]
    metrics = [*METRICS]
    variants = [variant.name for variant in experiment.variants]

    def place(known: list[str], name: str) -> int:
        return known.index(name) if name in known else len(known)

    return sorted(
        experiment.verdicts,
        key=lambda v: (
            place(workloads, v.workload),
            place(variants, v.variant),
            place(metrics, v.metric),
        ),
    )


@dataclass(frozen=True)
class _MetricRow:
    """A verdict. ``title`` is that of its metric; ``cells`` are figures, then the decision."""

    headings: tuple[str, ...]  # the workload, and remarks on it
    variant: str
    title: Text
    cells: tuple[Text, ...]


@dataclass(frozen=True)
class _MetricsTable:
    """Rows in order of workload and variant; ``heads`` are the column heads of their cells.

    Each workload is a heading. Variants have a column if lines fit with it, otherwise headings. Figures are
    never broken.
    """

    heads: tuple[str, ...]
    rows: Sequence[_MetricRow]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the heads, then each workload's headings and rows."""
        lines = _Lines(self.heads, self.rows)
        if len({row.variant for row in self.rows}) > 1:
            rows = [replace(row, cells=(plain_text(row.variant), *row.cells)) for row in self.rows]
            lines = _Lines(("variant", *self.heads), rows)
            if lines.width > options.max_width:
                lines = _Lines(self.heads, [*map(_below_variant, self.rows)])
        yield from lines.within(options.max_width)


def _below_variant(row: _MetricRow) -> _MetricRow:
    workload, *remarks = row.headings
    return replace(row, headings=(f"{workload}, {row.variant}", *remarks))


@dataclass(frozen=True)
class _Lines:
    heads: tuple[str, ...]
    rows: Sequence[_MetricRow]

    @property
    def width(self) -> int:
        """The width of lines with unbroken titles."""
        return self._titles + self._taken

    def within(self, width: int) -> Iterator[RenderableType]:
        """Yield the lines; titles are broken if lines would be too wide."""
        first = max(_LEAST_TITLE, min(self._titles, width - self._taken))
        yield self._table(first, [(plain_text(""), *(plain_text(head, "dim") for head in self.heads))])
        for (workload, *remarks), rows in groupby(self.rows, lambda row: row.headings):
            yield plain_text(workload, "bold")
            yield from (_indented(plain_text(remark, "dim")) for remark in remarks)
            yield self._table(first, ((_indented(row.title), *row.cells) for row in rows))

    @property
    def _titles(self) -> int:
        return _INDENT + max(row.title.cell_len for row in self.rows)

    @property
    def _taken(self) -> int:
        return sum(self._widths) + _GAP * len(self.heads)

    @property
    def _widths(self) -> list[int]:
        cells = ((row.cells[place].cell_len for row in self.rows) for place in range(len(self.heads)))
        return [max(len(head), *ones) for head, ones in zip(self.heads, cells, strict=True)]

    def _table(self, first: int, rows: Iterable[tuple[RenderableType, ...]]) -> RichTable:
        table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
        table.add_column(width=first, overflow="fold")
        for head, width in zip(self.heads, self._widths, strict=True):
            is_word = head in {"variant", self.heads[-1]}
            table.add_column(width=width, justify="left" if is_word else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        return table


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, _INDENT))
