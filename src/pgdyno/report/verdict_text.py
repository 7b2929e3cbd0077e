"""An experiment's verdicts for the terminal: a table for people at one, plain lines for everything else. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.model.experiment import Experiment
from pgdyno.model.metric import METRICS
from pgdyno.model.verdict import Decision, Verdict
from pgdyno.report import numbers
from pgdyno.report.series import typical
from pgdyno.report.settings import unsafe_variants
from pgdyno.report.words import answers, effect_text, metric_of, state, symbol

_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}


def verdict_table(experiment: Experiment) -> RenderableType:
    """Return the answer, what must not be overlooked, and a table of all verdicts.

    Decisions are told by words and signs as well as by colour. Names are printed as they are: markup in
    them is not interpreted.
    """
    parts: list[RenderableType] = [Text(experiment.question, style="bold")]
    parts += [Text(warning, style="bold red") for warning in _warnings(experiment)]
    parts += [Text(sentence) for sentence in answers(experiment)]
    if experiment.verdicts:
        parts += [Text(""), _table(experiment)]
    return Group(*parts)


def verdict_lines(experiment: Experiment) -> list[str]:
    """Return the same as plain lines, one per verdict: for pipes, logs and mail."""
    lines = [experiment.question, *_warnings(experiment), *answers(experiment)]
    for verdict in _ordered(experiment):
        statement = state(verdict, experiment.design.equivalence_margin)
        details = "; ".join(filter(None, (statement.support, statement.detectable)))
        lines.append(
            f"{verdict.workload}, {verdict.variant} against {verdict.baseline}: {verdict.decision}: "
            f"{statement.headline}" + (f" ({details})" if details else "")
        )
    return lines


def _warnings(experiment: Experiment) -> Iterator[str]:
    for variant in unsafe_variants(experiment):
        settings = ", ".join(variant.unsafe_settings)
        yield f"NOT DURABLE: {variant.name} can lose committed data in a crash ({settings})"
    if not experiment.is_complete:
        yield "INTERRUPTED: the experiment did not run to its planned end"


def _table(experiment: Experiment) -> Table:
    variants = {verdict.variant for verdict in experiment.verdicts}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("workload", *(("variant",) if len(variants) > 1 else ()), "metric"):
        table.add_column(title)
    for title in ("before → after", "effect", f"{numbers.share(experiment.design.level)} interval"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    workload = None
    for verdict in _ordered(experiment):
        names = [verdict.workload if verdict.workload != workload else ""]
        names += [verdict.variant] if len(variants) > 1 else []
        cells = [*names, metric_of(verdict.metric).title, _values(experiment, verdict), *_effect(verdict)]
        decision = Text(f"{symbol(verdict.decision)} {verdict.decision}", style=_STYLES[verdict.decision])
        table.add_row(*map(Text, cells), decision)
        workload = verdict.workload
    return table


def _effect(verdict: Verdict) -> tuple[str, str]:
    if verdict.interval is None:
        return effect_text(verdict), ""
    return effect_text(verdict), numbers.interval(verdict.interval)


def _values(experiment: Experiment, verdict: Verdict) -> str:
    metric = metric_of(verdict.metric)
    before, after = (
        typical(experiment, verdict.workload, verdict.metric, arm)
        for arm in (verdict.baseline, verdict.variant)
    )
    if before is None or after is None:
        return ""
    unit = metric.unit.replace("transactions/s", "tps")
    return f"{numbers.number(before)} → {numbers.number(after)} {unit}".rstrip()


def _ordered(experiment: Experiment) -> list[Verdict]:
    """Return the verdicts by workload, variant and metric, each in its usual order."""
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
