"""An experiment of several parts: the effect of each step, as a table and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.view.wording import effect_text, symbol
from pgdyno.model.experiments.experiment import DesignKind, Experiment, Part
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.report.elements.tables import Table, columns

_KINDS = {DesignKind.DUET: "duet", DesignKind.ALTERNATING: "whole trials"}
_IN_ALL = "in all"


def parts_table(experiment: Experiment) -> Table:
    """Return the effect of each step, and of all together, as a table."""
    rows = tuple(
        (
            step,
            workload,
            effect_text(verdict),
            "" if verdict.interval is None else numbers.interval(verdict.interval),
            f"{symbol(verdict.decision)} {verdict.decision}",
            how,
        )
        for step, workload, verdict, how in _rows(experiment)
    )
    level = numbers.share(experiment.design.level)
    return Table(
        "Throughput of each step against the one before, and of all of them together",
        columns("Step", "Workload", "Effect", f"{level} interval", "Verdict", "Measured in"),
        rows,
        totals=len(experiment.workloads),
    )


def parts_design(experiment: Experiment) -> Table:
    """Return the parts with their designs."""
    rows = tuple(
        (part.experiment, _steps(part), _KINDS[part.kind], str(part.rounds)) for part in experiment.parts
    )
    caption = "The parts; their own reports have their designs (pgdyno report ID)"
    return Table(caption, columns("Experiment", "Variants", "Design", "Rounds", numbers_from=3), rows)


def parts_sentences(experiment: Experiment) -> str:
    """Return an explanation of the product of the parts' effects and its interval."""
    level = numbers.share(experiment.design.level)
    designs = listed([f"{_steps(part)} in {_KINDS[part.kind]}" for part in experiment.parts])
    return (
        "Not all variants can take turns, because they differ in settings that are machine-wide. "
        "So they were measured in parts, each with the machine set as its variants need: "
        f"{designs}. The effect in all is the product of the parts' ratios: their log-ratios are added. The "
        "parts ran on different servers and at different times, so their errors are independent and their "
        f"variances add. The {level} interval is a t interval with that sum, degrees of freedom by Welch "
        "and Satterthwaite; the noisiest part dominates its width. It assumes that the effect of a step is "
        "the same with other servers running as alone."
    )


def _rows(experiment: Experiment) -> Iterator[tuple[str, str, Verdict, str]]:
    """Yield each step on each workload, then all together: name, workload, verdict, design."""
    for part in experiment.parts:
        for name in part.variants[1:]:
            for verdict in _throughput(part.verdicts, name):
                yield name, verdict.workload, verdict, _KINDS[part.kind]
    for verdict in _throughput(experiment.verdicts, experiment.parts[-1].variants[-1]):
        yield _IN_ALL, verdict.workload, verdict, f"product of {len(experiment.parts)} parts"


def _throughput(verdicts: tuple[Verdict, ...], variant: str) -> list[Verdict]:
    return [one for one in verdicts if one.metric == THROUGHPUT and one.variant == variant]


def _steps(part: Part) -> str:
    return " → ".join(part.variants)
