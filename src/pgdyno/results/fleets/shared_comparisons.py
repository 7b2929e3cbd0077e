"""The comparisons that experiments share: the same work, and the same difference between two servers. Pure.

A comparison is a workload, a baseline and a variant, each by name. Experiments with the same names are
combined only if no property that defines the comparison is known to differ. A property that one side does not
record is reported, and is not a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pgdyno.host.kernel_file import display_name
from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.secrets import REDACTED
from pgdyno.results.fleets.fleet_members import Member
from pgdyno.results.machines.same_experiment import work_of

_UNSET, _NOT_GIVEN = "unchanged", "not given"
_OWN_SERVER = "the experiment's own"
_MAJOR = 10_000  # server_version_num is major * 10000 + minor

_Conditions: TypeAlias = Mapping[str, str | None]
"""The properties that define a comparison, by subject; None: not recorded."""


class Compared(NamedTuple):
    """A comparison by its names."""

    workload: str
    baseline: str
    variant: str


@dataclass(frozen=True)
class NotCombined:
    """An experiment that is left out of a comparison, with the reason."""

    compared: Compared
    member: Member
    reason: str


@dataclass(frozen=True)
class SharedComparison:
    """A comparison with the experiments that agree on it, and those left out.

    ``unknown`` are subjects that some experiments do not record.
    """

    compared: Compared
    members: tuple[Member, ...]
    left_out: tuple[NotCombined, ...]
    unknown: tuple[str, ...]


def shared_comparisons(members: Sequence[Member]) -> tuple[SharedComparison, ...]:
    """Return every comparison of at least two experiments, in order of first occurrence."""
    having: dict[Compared, list[Member]] = {}
    for member in members:
        for compared in comparisons_of(member.experiment):
            having.setdefault(compared, []).append(member)
    return tuple(_shared(compared, ones) for compared, ones in having.items() if len(ones) > 1)


def comparisons_of(experiment: Experiment) -> tuple[Compared, ...]:
    """Return the comparisons that an experiment has verdicts on."""
    of = (Compared(one.workload, one.baseline, one.variant) for one in experiment.verdicts)
    return tuple(dict.fromkeys(of))


def _shared(compared: Compared, members: Sequence[Member]) -> SharedComparison:
    """Keep the largest set without known differences: by number of machines, then of experiments."""
    conditions = _completed([_conditions(compared, one.experiment) for one in members])
    recorded = [*zip(members, conditions, strict=True)]
    known_first = sorted(recorded, key=lambda one: [*one[1].values()].count(None))
    kinds: dict[tuple[str | None, ...], tuple[Member, _Conditions]] = {}
    for one in known_first:
        kinds.setdefault(tuple(one[1].values()), one)
    groups = [_agreeing([one, *known_first]) for one in kinds.values()]
    chosen = max(groups, key=lambda group: (len({one.machine for one in group.members}), len(group.members)))
    kept = [(member, values) for member, values in recorded if member in chosen.members]
    return SharedComparison(
        compared,
        tuple(member for member, _ in kept),
        tuple(
            NotCombined(compared, member, _in_words(chosen, values))
            for member, values in recorded
            if member not in chosen.members
        ),
        tuple(dict.fromkeys(subject for _, by in kept for subject, value in by.items() if value is None)),
    )


def _conditions(compared: Compared, experiment: Experiment) -> _Conditions:
    number = fact_at(experiment.server, "version_num")
    variants = {one.name: one for one in experiment.variants}
    return {
        **work_of(compared.workload, experiment),
        "design": experiment.design.kind,
        "phase": experiment.design.phase,
        "PostgreSQL's major version": str(number // _MAJOR) if isinstance(number, int) else None,
        **_of_variant(variants[compared.baseline]),
        **_of_variant(variants[compared.variant]),
    }


def _of_variant(variant: Variant) -> _Conditions:
    """Return a variant's settings and server; None for a named server, of which only the name is recorded."""
    settings = {
        f"{display_name(name)} of {variant.name}": None if value == REDACTED else value
        for name, value in variant.settings.items()
    }
    return {f"server of {variant.name}": None if variant.server else _OWN_SERVER, **settings}


def _completed(conditions: Sequence[_Conditions]) -> list[_Conditions]:
    """Return all conditions with the same subjects; a subject that an experiment lacks was left unchanged."""
    subjects = dict.fromkeys(subject for one in conditions for subject in one)
    missing = {of: _NOT_GIVEN if of.startswith("--") else _UNSET for of in subjects}
    return [{of: one.get(of, missing[of]) for of in subjects} for one in conditions]


@dataclass(frozen=True)
class _Group:
    """Experiments that agree pairwise; ``known`` has each subject's value and the member that recorded it."""

    members: list[Member]
    known: dict[str, tuple[str, Member]]

    def differences(self, conditions: _Conditions) -> list[str]:
        """Return the subjects with known differences."""
        return [
            of
            for of, value in conditions.items()
            if value is not None and of in self.known and self.known[of][0] != value
        ]


def _agreeing(recorded: Sequence[tuple[Member, _Conditions]]) -> _Group:
    """Return the group that grows from the first experiment: each next one joins if it has no difference.

    A value that the first ones do not record is taken from the next one that does: two experiments that
    differ never share a group.
    """
    group = _Group([], {})
    for member, values in recorded:
        if member not in group.members and not group.differences(values):
            group.members.append(member)
            for of, value in values.items():
                if value is not None:
                    group.known.setdefault(of, (value, member))
    return group


def _in_words(chosen: _Group, conditions: _Conditions) -> str:
    subject, *others = chosen.differences(conditions)
    known, member = chosen.known[subject]
    more = f", and {len(others)} more {'difference' if len(others) == 1 else 'differences'}" if others else ""
    return f"{subject} is {conditions[subject]}, {known} on {member.label}{more}"
