"""The comparisons that experiments share: the same work, and the same difference between two servers. Pure.

A comparison is a workload, a baseline and a variant by name. Experiments that have one of the same names
count together only if nothing that defines it is known to differ. What is not recorded on one side is told,
and is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.experiments.fleets.fleet_members import Member
from pgdyno.experiments.machines.recorded_facts import fact_at
from pgdyno.experiments.machines.same_experiment import work_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.servers.secrets import REDACTED
from pgdyno.model.variants.variant import Variant

_UNSET, _NOT_GIVEN = "as it was", "not given"
_OWN_SERVER = "the experiment's own"
_MAJOR = 10_000  # server_version_num counts minor versions below it


@dataclass(frozen=True)
class Compared:
    """A comparison by its names."""

    workload: str
    baseline: str
    variant: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.variant} against {self.baseline} on {self.workload}"


@dataclass(frozen=True)
class NotCombined:
    """An experiment that is left out of a comparison, and why."""

    compared: Compared
    member: Member
    reason: str


@dataclass(frozen=True)
class SharedComparison:
    """A comparison with the experiments that have it alike, and those that have another one.

    ``unknown`` are subjects that are not recorded everywhere.
    """

    compared: Compared
    members: tuple[Member, ...]
    left_out: tuple[NotCombined, ...]
    unknown: tuple[str, ...]


def shared_comparisons(members: Sequence[Member]) -> tuple[SharedComparison, ...]:
    """Return every comparison of at least two experiments, in the order of the first that has it."""
    having: dict[Compared, list[Member]] = {}
    for member in members:
        for compared in comparisons_of(member.experiment):
            having.setdefault(compared, []).append(member)
    return tuple(_shared(compared, ones) for compared, ones in having.items() if len(ones) > 1)


def comparisons_of(experiment: Experiment) -> tuple[Compared, ...]:
    """Return the comparisons that an experiment has verdicts on."""
    found = (Compared(one.workload, one.baseline, one.variant) for one in experiment.verdicts)
    return tuple(dict.fromkeys(found))


def _shared(compared: Compared, members: Sequence[Member]) -> SharedComparison:
    """Keep the experiments that agree with the one with which most machines do, then most experiments."""
    conditions = [(one, _conditions(compared, one.experiment)) for one in members]

    def agreeing(reference: Mapping[str, str | None]) -> tuple[int, int]:
        machines = [one.machine for one, its in conditions if not [*_conflicts(reference, its)]]
        return len(set(machines)), len(machines)

    chosen, reference = max(conditions, key=lambda one: agreeing(one[1]))  # of equals the first
    kept, left_out = [], []
    for member, its in conditions:
        if conflicts := [*_conflicts(reference, its)]:
            left_out.append(NotCombined(compared, member, _in_words(conflicts, chosen)))
        else:
            kept.append((member, its))
    unknown = dict.fromkeys(subject for _, its in kept for subject, value in its.items() if value is None)
    return SharedComparison(compared, tuple(one for one, _ in kept), tuple(left_out), tuple(unknown))


def _conflicts(
    reference: Mapping[str, str | None], other: Mapping[str, str | None]
) -> Iterator[tuple[str, str, str]]:
    """Yield the subjects that are known to differ, with both values."""
    for subject in dict.fromkeys((*reference, *other)):
        unset = _NOT_GIVEN if subject.startswith("--") else _UNSET
        of_reference, of_other = (one.get(subject, unset) for one in (reference, other))
        if of_reference is not None and of_other is not None and of_reference != of_other:
            yield subject, of_reference, of_other


def _in_words(conflicts: Sequence[tuple[str, str, str]], reference: Member) -> str:
    subject, of_reference, of_other = conflicts[0]
    more = len(conflicts) - 1
    others = "" if not more else f", and {more} more {'difference' if more == 1 else 'differences'}"
    return f"{subject} is {of_other}, {of_reference} on {reference.label}{others}"


def _conditions(compared: Compared, experiment: Experiment) -> dict[str, str | None]:
    """Return all that defines a comparison, by subject; None: not recorded."""
    number = fact_at(experiment.server, "version_num")
    variants = {one.name: one for one in experiment.variants}
    return {
        **work_of(compared.workload, experiment),
        "way of measuring": experiment.design.kind,
        "phase": experiment.design.phase,
        "PostgreSQL's major version": str(number // _MAJOR) if isinstance(number, int) else None,
        **_of_variant(variants[compared.baseline]),
        **_of_variant(variants[compared.variant]),
    }


def _of_variant(variant: Variant) -> dict[str, str | None]:
    """Return its settings; of another server than the experiment's own only the name is recorded."""
    settings = {
        f"{display_name(name)} of {variant.name}": None if value == REDACTED else value
        for name, value in variant.settings.items()
    }
    return {f"server of {variant.name}": None if variant.server else _OWN_SERVER, **settings}
