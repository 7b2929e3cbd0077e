"""An experiment's verdicts as tables for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from pgdyno.accelerate.view import at_load_table
from pgdyno.base import numbers
from pgdyno.measure.design.phase import phase_of
from pgdyno.measure.verdicts.durability import warnings
from pgdyno.measure.verdicts.scaling import shown_by_curves
from pgdyno.measure.verdicts.transaction_split import shown_by_splits
from pgdyno.measure.view.cards import before_and_after, measured
from pgdyno.measure.view.metrics_table import MetricRow, MetricsTable
from pgdyno.measure.view.series import typical
from pgdyno.measure.view.statements_table import statement_tables
from pgdyno.measure.view.steal_sentences import adjustment_tables, refusals
from pgdyno.measure.view.void_blocks import failures_table
from pgdyno.measure.view.wording import (
    answers,
    effect_text,
    emulation_warning,
    metric_of,
    patch_warnings,
    step_names,
    symbol,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.report.elements.settings import unsafe_variants
from pgdyno.report.elements.terminal import DECISION_STYLES, PlainTable, plain_text
from pgdyno.studies.grids.grid_text import grid_tables
from pgdyno.studies.views import views
from pgdyno.workload.view.likeness_text import likeness_sentences


def verdict_table(experiment: Experiment) -> RenderableType:
    """Return the answer, warnings, and a table of all verdicts.

    Decisions are shown by words and symbols as well as by colour. Markup in names is not interpreted.
    """
    parts: list[RenderableType] = [plain_text(experiment.question, style="bold")]
    parts += [plain_text(warning, style="bold red") for warning in _warnings(experiment)]
    parts += [plain_text(sentence) for sentence in answers(experiment)]
    parts += [plain_text(f"{sentence}.") for sentence in likeness_sentences(experiment)]
    parts += _failures(experiment)
    parts += _before_and_after(experiment)
    parts += grid_tables(experiment)
    parts += [table for view in views() for table in view.tables(experiment)]
    if any(not _has_own_table(experiment, verdict.workload) for verdict in experiment.verdicts):
        parts += [plain_text(""), _table(experiment)]
    parts += _statements(experiment)
    if not experiment.verdicts:
        parts += [plain_text(line) for line in _measured_lines(experiment)]
    parts += _at_load(experiment)
    parts += _adjusted(experiment)
    return Group(*parts, *_undecided(experiment))


def _before_and_after(experiment: Experiment) -> Iterator[RenderableType]:
    if table := before_and_after(experiment):
        caption = f"{table.caption}. {table.lesson}".strip()
        yield from (plain_text(""), plain_text(caption), PlainTable(table))


def _failures(experiment: Experiment) -> Iterator[RenderableType]:
    if (table := failures_table(experiment)).rows:
        yield from (plain_text(""), plain_text(f"{table.caption}."), PlainTable(table))


def _statements(experiment: Experiment) -> Iterator[RenderableType]:
    for table in statement_tables(experiment):
        yield from (plain_text(""), plain_text(f"{table.caption}."), PlainTable(table))
        if table.lesson:
            yield plain_text(table.lesson, "dim")


def _at_load(experiment: Experiment) -> Iterator[RenderableType]:
    if table := at_load_table(experiment):
        yield from (plain_text(""), plain_text(f"{table.caption}."), PlainTable(table))


def _adjusted(experiment: Experiment) -> Iterator[RenderableType]:
    for table in adjustment_tables(experiment):
        yield from (plain_text(""), plain_text(f"{table.caption}."), PlainTable(table))
    yield from (plain_text(f"{sentence}.", "dim") for sentence in refusals(experiment))


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


def _table(experiment: Experiment) -> MetricsTable:
    """Return the table of verdicts on workloads without their own tables; steps and grid cells have these."""
    heads = ("before → after", "effect", f"{numbers.share(experiment.design.level)} interval", "verdict")
    verdicts = (v for v in _ordered(experiment) if not _has_own_table(experiment, v.workload))
    return MetricsTable(heads, [_row(experiment, verdict) for verdict in verdicts])


def _row(experiment: Experiment, verdict: Verdict) -> MetricRow:
    phase = phase_of(experiment, verdict.workload)
    headings = (verdict.workload,) if phase is None else (verdict.workload, f"({phase})")
    figures = map(plain_text, (_values(experiment, verdict), *_effect(verdict)))
    decision = plain_text(f"{symbol(verdict.decision)} {verdict.decision}", DECISION_STYLES[verdict.decision])
    return MetricRow(headings, verdict.variant, _metric(verdict), (*figures, decision))


def _metric(verdict: Verdict) -> Text:
    metric = metric_of(verdict.metric)
    unit = metric.unit.replace("transactions/s", "tps")
    return plain_text(f"{metric.title} ({unit})" if unit else metric.title)


def _effect(verdict: Verdict) -> tuple[str, str]:
    if verdict.interval is None:
        return effect_text(verdict), ""
    return effect_text(verdict), numbers.interval(verdict.interval)


def _values(experiment: Experiment, verdict: Verdict) -> str:
    before, after = (
        typical(experiment, verdict.workload, verdict.metric, arm)
        for arm in (verdict.baseline, verdict.variant)
    )
    if before is None or after is None:
        return ""
    return f"{numbers.number(before)} → {numbers.number(after)}"


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
