"""Sentences and table rows on comparisons on several machines, for page and terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from pgdyno.base import numbers
from pgdyno.base.text import listed, sentence
from pgdyno.measure.view.wording import effect_text, metric_of, symbol, verdict_cells
from pgdyno.model.experiments.fleet import Fleet, FleetComparison, FleetMachine, MachineEffect, MachineSpread
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.report.charts.forest import ForestRow
from pgdyno.report.elements.tables import NOTHING, Table, columns

METHOD = (
    "Each machine counts once, however precisely it was measured. The interval of all machines is Student's "
    "t interval of the mean of their effects. The interval of the next machine is a prediction interval for "
    "the effect that an equally precise experiment would measure on another machine. Both assume that these "
    "machines are a random sample of the fleet."
)
TWO_MACHINES = (
    "Two machines show next to nothing about a third: there is one degree of freedom, and a 95 % interval "
    "reaches 12.7 standard errors to each side."
)
ALL, NEXT = "all machines", "the next machine"
_PREDICTED = "prediction"
_UNKNOWN = "unknown"
_ALWAYS_SHOWN = ("processor", "CPUs", "memory", "kernel", "PostgreSQL")
_ANSWERS = {
    Decision.BETTER: "better",
    Decision.WORSE: "worse",
    Decision.EQUIVALENT: "no difference that matters",
    Decision.INCONCLUSIVE: "not decided",
}


def headline(fleet: Fleet) -> str:
    """Return the numbers of machines and experiments."""
    experiments = sum(len(one.experiments) for one in fleet.machines)
    machines = len(fleet.machines)
    return f"{machines} {'machine' if machines == 1 else 'machines'}, {experiments} experiments"


def answer(fleet: Fleet) -> str:
    """Return a sentence on the decisions by the leading metric, with the common reason if there are none."""
    if all(one.verdict.decision is Decision.INCONCLUSIVE for one in fleet.comparisons):
        reason = common_reason(fleet)
        return f"Across machines, nothing is decided{f': {reason}' if reason else ''}."
    found: dict[Decision, dict[str, list[str]]] = {decision: {} for decision in _ANSWERS}
    for one in leading(fleet):
        found[one.verdict.decision].setdefault(one.variant, []).append(one.workload)
    parts = [
        f"{_ANSWERS[decision]}: "
        + listed([f"{variant} on {listed(names)}" for variant, names in variants.items()])
        for decision, variants in found.items()
        if variants
    ]
    return f"Across machines, {'; '.join(parts)}."


def common_reason(fleet: Fleet) -> str:
    """Return why no comparison is decided; empty if one is, or if their reasons differ."""
    reasons = {one.verdict.reason for one in fleet.comparisons}
    is_decided = any(one.verdict.decision is not Decision.INCONCLUSIVE for one in fleet.comparisons)
    return reasons.pop() if len(reasons) == 1 and not is_decided else ""


def leading(fleet: Fleet) -> list[FleetComparison]:
    """Return one comparison per workload and variant: of throughput, or else of its first metric."""
    return [_leading(ones) for ones in grouped(fleet)]


def grouped(fleet: Fleet) -> list[list[FleetComparison]]:
    """Return the comparisons by workload and variant."""
    by = groupby(fleet.comparisons, key=lambda one: (one.workload, one.variant, one.baseline))
    return [[*ones] for _, ones in by]


def _leading(comparisons: Sequence[FleetComparison]) -> FleetComparison:
    return next((one for one in comparisons if one.metric == THROUGHPUT), comparisons[0])


def title(one: FleetComparison) -> str:
    """Return the subject of a comparison."""
    metric = metric_of(one.metric, one.operation).title
    return f"{one.workload}: {metric} of {one.variant} against {one.baseline}"


def forest_rows(one: FleetComparison) -> Iterator[ForestRow]:
    """Yield a row per machine (and per experiment if it has several), for all machines, and for the next."""
    for machine in one.machines:
        yield _row(machine.machine, machine.verdict)
        yield from (_part(occasion.created, occasion.interval) for occasion in machine.occasions)
    if one.prediction is not None:
        yield _row(ALL, one.verdict)
        bounds = numbers.interval(one.prediction)
        yield ForestRow(NEXT, Decision.INCONCLUSIVE, _PREDICTED, "", bounds, one.prediction, has_mark=False)


def is_part(row: ForestRow) -> bool:
    """Whether the row is one of several experiments of the machine above it."""
    return not row.decision_text


def _row(label: str, verdict: Verdict) -> ForestRow:
    effect, bounds, decided = verdict_cells(verdict)
    return ForestRow(label, verdict.decision, decided, effect, bounds, verdict.interval)


def _part(created: str, interval: Interval) -> ForestRow:
    effect = numbers.change_within(interval.point, interval.low, interval.high)
    bounds = numbers.interval(interval)
    return ForestRow(_minute(created), Decision.INCONCLUSIVE, "", effect, bounds, interval)


def remarks(one: FleetComparison, fleet: Fleet) -> Iterator[str]:
    """Yield how far machines differ, and why nothing is decided unless ``answer`` gives the reason."""
    if one.between is not None:
        yield _between(one.between)
    if one.verdict.decision is Decision.INCONCLUSIVE and not common_reason(fleet):
        yield f"{symbol(Decision.INCONCLUSIVE)} {sentence(one.verdict.reason)}."
    for machine in one.machines:
        if machine.verdict.is_withheld:
            yield f"{machine.machine}: {machine.verdict.reason}."
    if count := _agreement(one.machines):
        yield count


def _between(between: MachineSpread) -> str:
    if between.high == 0:
        return "Machines differ less than the noise explains: no interval of their standard deviation."
    low, sd, high = (_deviation(one) for one in (between.low, between.sd, between.high))
    level = numbers.share(between.level)
    return f"Standard deviation between machines: {sd} ({level} interval {low} … {high})."


def _deviation(sd: float) -> str:
    """Return a standard deviation of log-ratios as a relative change."""
    return numbers.share(0) if sd == 0 else numbers.size_of_change(math.exp(min(sd, _LARGEST_SD)))


_LARGEST_SD = 20.0  # beyond it the factor has no meaning, and soon no number


def _agreement(machines: Sequence[MachineEffect]) -> str:
    """Return the counts of the machines' own verdicts; empty for a single machine."""
    if len(machines) < 2:
        return ""
    counts = {
        decision: sum(1 for one in machines if one.verdict.decision is decision) for decision in _ANSWERS
    }
    parts = [f"{_ANSWERS[decision]} on {count}" for decision, count in counts.items() if count]
    return f"Individually: {', '.join(parts)} of {len(machines)} machines."


def others_table(comparisons: Sequence[FleetComparison]) -> Table | None:
    """Return the metrics other than the leading one; None if there are none."""
    rows = tuple(
        (
            metric_of(one.metric, one.operation).title,
            effect_text(one.verdict),
            NOTHING if one.verdict.interval is None else numbers.interval(one.verdict.interval),
            NOTHING if one.prediction is None else numbers.interval(one.prediction),
            f"{symbol(one.verdict.decision)} {one.verdict.decision}",
        )
        for one in comparisons
        if one is not _leading(comparisons)
    )
    heads = columns("", ALL, "interval", NEXT, "verdict", numbers_from=1, words_from=4)
    return Table("Other metrics", heads, rows) if rows else None


def machine_table(machines: Sequence[FleetMachine]) -> Table:
    """Return the machines' main facts, and all others that differ between them."""
    subjects = [
        subject
        for subject in dict.fromkeys(subject for one in machines for subject in one.facts)
        if subject in _ALWAYS_SHOWN or len({one.facts.get(subject) for one in machines}) > 1
    ]
    rows = tuple((one.name, *(one.facts.get(subject, _UNKNOWN) for subject in subjects)) for one in machines)
    return Table("The machines", columns("", *subjects), rows)


def _minute(created: str) -> str:
    return created[:16].replace("T", " ")


def experiment_table(machines: Sequence[FleetMachine]) -> Table:
    """Return the experiments of each machine."""
    rows = tuple(
        (machine.name, one.source, one.experiment, _minute(one.created))
        for machine in machines
        for one in machine.experiments
    )
    return Table("The experiments", columns("", "given as", "experiment", "measured"), rows)


def method_notes(fleet: Fleet) -> list[str]:
    """Return the notes on the method that apply to this fleet."""
    has_two = any(len(one.machines) == 2 for one in fleet.comparisons)
    return [TWO_MACHINES, METHOD] if has_two else [METHOD]
