"""Comparisons on several machines in words and rows, for page and terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pgdyno.model import numbers
from pgdyno.model.experiments.fleet import Fleet, FleetComparison, FleetMachine, MachineEffect, MachineSpread
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns
from pgdyno.report.text.words import effect_text, listed, metric_of, sentence, symbol

METHOD = (
    "Each machine counts once, however precisely it was measured. The interval of all machines is Student's "
    "interval of the mean of their effects; that of the next machine holds what another one would measure in "
    "an experiment as precise as these, as often as it says. Both presume that these machines are a random "
    "sample of the fleet."
)
TWO_MACHINES = (
    "Two machines say next to nothing about a third: there is a single difference to learn from, so that a "
    "95 % interval reaches 12.7 standard errors to each side."
)
ALL, NEXT = "all machines", "the next machine"
_UNKNOWN = "unknown"
_MOST_LISTED = 10  # arbitrary: of a machine's experiments, beside its mean
_ALWAYS_SHOWN = ("processor", "CPUs", "memory", "kernel", "PostgreSQL")
_ANSWERS = {
    Decision.BETTER: "better",
    Decision.WORSE: "worse",
    Decision.EQUIVALENT: "no difference that matters",
    Decision.INCONCLUSIVE: "not decided",
}


@dataclass(frozen=True)
class FleetRow:
    """One line of a forest plot. ``decision`` None: it is no verdict of its own."""

    label: str
    effect: str
    interval: Interval | None
    decision: Decision | None = None
    is_part: bool = False  # of the row before: one of a machine's experiments

    @property
    def bounds(self) -> str:
        """The interval in words."""
        return "" if self.interval is None else numbers.interval(self.interval)

    @property
    def verdict(self) -> str:
        """The decision with its sign."""
        return "" if self.decision is None else f"{symbol(self.decision)} {self.decision}"


def headline(fleet: Fleet) -> str:
    """Return how many machines and experiments there are."""
    experiments = sum(len(one.experiments) for one in fleet.machines)
    machines = len(fleet.machines)
    return f"{machines} {'machine' if machines == 1 else 'machines'}, {experiments} experiments"


def answer(fleet: Fleet) -> str:
    """Return in a sentence which variants win where, by the leading metric, and why if none does."""
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
    """Return why no comparison is decided, where all have the same reason."""
    reasons = {one.verdict.reason for one in fleet.comparisons}
    is_decided = any(one.verdict.decision is not Decision.INCONCLUSIVE for one in fleet.comparisons)
    return reasons.pop() if len(reasons) == 1 and not is_decided else ""


def leading(fleet: Fleet) -> list[FleetComparison]:
    """Return throughput of every workload and variant, or the first metric that there is."""
    return [_leading(ones) for ones in grouped(fleet)]


def grouped(fleet: Fleet) -> list[list[FleetComparison]]:
    """Return the comparisons by workload and variant."""
    by = groupby(fleet.comparisons, key=lambda one: (one.workload, one.variant, one.baseline))
    return [[*ones] for _, ones in by]


def _others(comparisons: Sequence[FleetComparison]) -> list[FleetComparison]:
    """Return the metrics beside the leading one."""
    first = _leading(comparisons)
    return [one for one in comparisons if one is not first]


def _leading(comparisons: Sequence[FleetComparison]) -> FleetComparison:
    return next((one for one in comparisons if one.metric == THROUGHPUT), comparisons[0])


def title(one: FleetComparison) -> str:
    """Return the subject of a comparison."""
    metric = metric_of(one.metric, one.operation).title
    return f"{one.workload}: {metric} of {one.variant} against {one.baseline}"


def forest_rows(one: FleetComparison) -> Iterator[FleetRow]:
    """Yield every machine, each of its experiments if they are some, all machines, and the next one."""
    for machine in one.machines:
        yield _row(machine.machine, machine.verdict)
        if len(machine.occasions) <= _MOST_LISTED:
            yield from (_part(occasion.created, occasion.interval) for occasion in machine.occasions)
    if one.prediction is not None:
        yield _row(ALL, one.verdict)
        yield FleetRow(NEXT, "", one.prediction)


def _row(label: str, verdict: Verdict) -> FleetRow:
    return FleetRow(label, effect_text(verdict), verdict.interval, verdict.decision)


def _part(created: str, interval: Interval) -> FleetRow:
    effect = numbers.change_within(interval.point, interval.low, interval.high)
    return FleetRow(_minute(created), effect, interval, is_part=True)


def remarks(one: FleetComparison, fleet: Fleet) -> Iterator[str]:
    """Yield how far machines differ, and why nothing is decided where ``answer`` does not say it."""
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
        return "Machines lie closer together than the noise explains; no interval of how far they differ."
    low, sd, high = (_deviation(one) for one in (between.low, between.sd, between.high))
    level = numbers.share(between.level)
    return f"Standard deviation between machines: {sd} ({level} interval {low} … {high})."


def _deviation(sd: float) -> str:
    """Return a standard deviation of log-ratios as a relative change."""
    return numbers.share(0) if sd == 0 else numbers.size_of_change(math.exp(min(sd, _LARGEST_SD)))


_LARGEST_SD = 20.0  # beyond it the factor has no meaning, and soon no number


def _agreement(machines: Sequence[MachineEffect]) -> str:
    """Count the machines' own verdicts, where there are several machines."""
    if len(machines) < 2:
        return ""
    counts = {
        decision: sum(1 for one in machines if one.verdict.decision is decision) for decision in _ANSWERS
    }
    parts = [f"{_ANSWERS[decision]} on {count}" for decision, count in counts.items() if count]
    return f"By themselves: {', '.join(parts)} of {len(machines)} machines."


def others_table(comparisons: Sequence[FleetComparison]) -> Table | None:
    """Return the metrics beside the leading one; None if there are none."""
    rows = tuple(_other(one) for one in _others(comparisons))
    figures = (Column(title, is_number=True) for title in (ALL, "interval", NEXT))
    heads = (Column(""), *figures, Column("verdict"))
    return Table("Other metrics", heads, rows) if rows else None


def _other(one: FleetComparison) -> tuple[str, ...]:
    bounds = one.verdict.interval
    return (
        metric_of(one.metric, one.operation).title,
        effect_text(one.verdict),
        NOTHING if bounds is None else numbers.interval(bounds),
        NOTHING if one.prediction is None else numbers.interval(one.prediction),
        f"{symbol(one.verdict.decision)} {one.verdict.decision}",
    )


def machine_table(machines: Sequence[FleetMachine]) -> Table:
    """Return the machines' main facts, and all others in which they differ."""
    subjects = _told_subjects(machines)
    rows = tuple((one.name, *(one.facts.get(subject, _UNKNOWN) for subject in subjects)) for one in machines)
    return Table("The machines", columns("", *subjects), rows)


def machine_lines(machines: Sequence[FleetMachine]) -> Iterator[str]:
    """Yield the same as a line for each machine, and one for each of its experiments."""
    subjects = _told_subjects(machines)
    width = max(len(one.name) for one in machines)
    for one in machines:
        facts = [f"{subject} {one.facts.get(subject, _UNKNOWN)}" for subject in subjects]
        yield f"{one.name:<{width}}  {'; '.join(facts).removeprefix('processor ')}"
        if len(one.experiments) > _MOST_LISTED:
            first, last = (_minute(end(of.created for of in one.experiments)) for end in (min, max))
            yield f"{'':<{width}}    {len(one.experiments)} experiments, {first} … {last}"
            continue
        for of in one.experiments:
            shown = of.source if of.source == of.experiment else f"{of.source}: {of.experiment}"
            yield f"{'':<{width}}    {shown}, {_minute(of.created)}"


def _told_subjects(machines: Sequence[FleetMachine]) -> list[str]:
    every = dict.fromkeys(subject for one in machines for subject in one.facts)
    return [
        subject
        for subject in every
        if subject in _ALWAYS_SHOWN or len({one.facts.get(subject) for one in machines}) > 1
    ]


def _minute(created: str) -> str:
    """Return a time without its seconds."""
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
    """Return the notes on the method that this fleet needs."""
    has_two = any(len(one.machines) == 2 for one in fleet.comparisons)
    return [TWO_MACHINES, METHOD] if has_two else [METHOD]
