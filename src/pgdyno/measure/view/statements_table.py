"""Statements with their share of the time, times per call and verdicts, as tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import shortened
from pgdyno.measure.verdicts.statements import LEAST_CALLS, LEAST_SHARE, other_load, statement_verdicts
from pgdyno.measure.view.wording import symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.statements import SHARED, StatementVerdict, UsedPlans
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.report.elements.tables import NOTHING, Table, columns

_MOST_ROWS = 20
_LONGEST_NAME = 70


def statement_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the cost of variants' SQL, then a table for each workload and variant with counted statements.

    Statements that became slower or faster come first if there are too many for one table; the others are
    one line.
    """
    yield from _schema_changes(experiment.schema_changes)
    plans = changed_plans(experiment)
    found: dict[tuple[str, str], list[StatementVerdict]] = {}
    for one in statement_verdicts(experiment):
        found.setdefault((one.workload, one.variant), []).append(one)
    for (workload, variant), its in found.items():
        is_alone = variant == experiment.baseline
        if is_alone:
            yield _alone(workload, its)
            continue
        changed = {one.statement for one in plans if (one.workload, one.variant) == (workload, variant)}
        yield _compared(its, changed, other_load(experiment, workload, variant))


def _schema_changes(changes: Sequence[SchemaChange]) -> Iterator[Table]:
    rows = [
        (
            one.workload,
            one.variant,
            shortened("; ".join(one.statements), _LONGEST_NAME),
            numbers.short_duration(one.time_s),
            *map(numbers.size, (one.made_bytes, one.dropped_bytes, one.wal_bytes)),
        )
        for one in changes
        if one.statements
    ]
    if rows:
        heads = "Workload", "Variant", "SQL"
        yield Table(
            "SQL of variants, run once on their copies of the data",
            columns(*heads, "Time", "Made", "Dropped", "WAL", numbers_from=len(heads)),
            tuple(rows),
            lesson="The data of all variants then had a fresh ANALYZE and a checkpoint.",
        )


@dataclass(frozen=True)
class ChangedPlan:
    """A statement that two servers plan differently: the plans of both, as text."""

    workload: str
    variant: str
    statement: str
    before: str
    after: str


def changed_plans(experiment: Experiment) -> list[ChangedPlan]:
    """Return the statements that a variant plans differently than the baseline, in all workloads."""
    plans, baseline = experiment.plans, experiment.baseline
    before = {(one.workload, one.statement): one for one in plans if one.variant == baseline}
    return [
        ChangedPlan(one.workload, one.variant, one.statement, _plans_text(was), _plans_text(one))
        for one in plans
        if (was := before.get((one.workload, one.statement))) and {*was.shapes} != {*one.shapes}
    ]


def _plans_text(plans: UsedPlans) -> str:
    return "\n\n".join("\n".join(lines) for lines in plans.shapes)


def _compared(verdicts: Sequence[StatementVerdict], changed: AbstractSet[str], load: float | None) -> Table:
    shown, left = _shown(verdicts)
    workload, variant, baseline = verdicts[0].workload, verdicts[0].variant, verdicts[0].baseline
    rows = [
        (
            shortened(one.statement, _LONGEST_NAME),
            numbers.share(one.share, 1),
            f"{_ms(one.before_ms)} → {_ms(one.after_ms)}",
            NOTHING if one.effect is None else numbers.change(one.effect),
            NOTHING if one.interval is None else numbers.interval(one.interval),
            one.reason if one.effect is None else f"{symbol(one.decision)} {_WORDS[one.decision]}",
            "changed" if changed & {one.statement, *one.statement.split(SHARED)} else "",
        )
        for one in shown
    ]
    return Table(
        f"Statements of {workload}: the server's time per call, {baseline} → {variant}",
        columns(
            *("Statement", "Time", "ms/call", "Effect", "Interval", "Verdict", "Plan"),
            numbers_from=1,
            words_from=5,
        ),
        (*rows, *_rest(left, 7)),
        lesson=(
            f"Judged: statements with at least {LEAST_CALLS} counted calls a round (a quarter of the "
            f"turns, or a whole trial, is counted) and {numbers.share(LEAST_SHARE, 1)} of the time. "
            "Intervals of faster and slower ones are at more than 95 %, because these were selected."
            f"{_load_sentence(variant, load)}"
        ),
    )


def _load_sentence(variant: str, load: float | None) -> str:
    """Return a sentence on the other load of a variant; empty if loads are alike."""
    if load is None:
        return ""
    more = "more" if load > 1 else "less"
    return (
        f" {variant} had {numbers.size_of_change(load)} {more} load: slower statements do not fail --gate, "
        "because waiting for others depends on the load."
    )


def _alone(workload: str, verdicts: Sequence[StatementVerdict]) -> Table:
    shown, left = _shown(verdicts)
    rows = [
        (shortened(one.statement, _LONGEST_NAME), numbers.share(one.share, 1), _ms(one.before_ms))
        for one in shown
    ]
    return Table(
        f"Statements of {workload}: share of the server's time, and time per call",
        columns("Statement", "Time", "ms/call", numbers_from=1),
        (*rows, *_rest(left, 3)),
    )


_WORDS = {
    Decision.BETTER: "faster",
    Decision.WORSE: "slower",
    Decision.EQUIVALENT: "equivalent",
    Decision.INCONCLUSIVE: "inconclusive",
}


def _shown(verdicts: Sequence[StatementVerdict]) -> tuple[list[StatementVerdict], list[StatementVerdict]]:
    """Return the statements to show, and the others."""
    decided = [one for one in verdicts if one.decision in {Decision.BETTER, Decision.WORSE}]
    first = sorted(decided, key=lambda one: one.decision is not Decision.WORSE)
    rest = [one for one in verdicts if one not in decided]
    chosen = (first + rest)[:_MOST_ROWS]
    return [one for one in verdicts if one in chosen], [one for one in verdicts if one not in chosen]


def _rest(left: Sequence[StatementVerdict], width: int) -> Iterator[tuple[str, ...]]:
    if left:
        share = numbers.share(sum(one.share for one in left), 1)
        yield (f"{len(left)} further statements", share, *([NOTHING] * (width - 2)))


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}" if value < 10 else numbers.number(value)
