"""The accelerator's study in the form of the published table: throughput before and after. Pure.

A column is a workload, a row a configuration: the default before, the whole plan after, and between them the
plan's layers, one more in each row. Beside the published gain each one here has its interval and its verdict.
"""

from __future__ import annotations

from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.plans.terms import PLAN
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns
from pgdyno.report.text.series import typical
from pgdyno.report.text.words import effect_text, symbol

_STUDY = "accelerator-study"
_BEFORE_AND_AFTER = 2  # rows
_LESSON = "Each row has one layer more than the row above it."


def before_and_after(experiment: Experiment) -> Table | None:
    """Return the table; None of other studies, and as long as nothing was measured."""
    if experiment.name != _STUDY or not experiment.blocks:
        return None
    titles = [title for workload in experiment.workloads for title in (workload, "gain")]
    names = [variant.name for variant in experiment.variants]
    level = numbers.share(experiment.design.level)
    return Table(
        f"Transactions per second before and after, and the gain over {experiment.baseline} with its {level} "
        "interval",
        (Column(""), *columns(*titles, numbers_from=0)),
        tuple((_row_name(name, experiment), *_cells(experiment, name)) for name in names),
        lesson=_LESSON if len(names) > _BEFORE_AND_AFTER else "",
    )


def _row_name(name: str, experiment: Experiment) -> str:
    if name == experiment.baseline:
        return f"before: {name}"
    return f"after: {name}" if name == PLAN else name


def _cells(experiment: Experiment, variant: str) -> list[str]:
    found = {v.workload: v for v in experiment.verdicts if (v.metric, v.variant) == (THROUGHPUT, variant)}
    cells = []
    for workload in experiment.workloads:
        rate = typical(experiment, workload, THROUGHPUT, variant)
        cells.append(NOTHING if rate is None else numbers.number(rate))
        cells.append("" if variant == experiment.baseline else _gain(found.get(workload)))
    return cells


def _gain(verdict: Verdict | None) -> str:
    if verdict is None or verdict.effect is None:
        return NOTHING
    interval = f" ({numbers.interval(verdict.interval)})" if verdict.interval else ""
    return f"{effect_text(verdict)}{interval} {symbol(verdict.decision)}"
