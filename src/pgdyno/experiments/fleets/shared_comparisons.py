"""The comparisons that experiments share: the same work, and the same difference between two servers. Pure.

A comparison is a workload, a baseline and a variant by name. Experiments that have one of the same names
count together only if nothing that defines it is known to differ. What is not recorded on one side is told,
and is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.experiments.fleets.fleet_members import Member
from pgdyno.model.fleets.finding import Compared, FleetFinding

_UNSET, _NOT_GIVEN = "as it was", "not given"


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
        for compared in comparisons_of(member.finding):
            having.setdefault(compared, []).append(member)
    return tuple(_shared(compared, ones) for compared, ones in having.items() if len(ones) > 1)


def comparisons_of(finding: FleetFinding) -> tuple[Compared, ...]:
    """Return the comparisons that an experiment has verdicts on."""
    return tuple(one.compared for one in finding.comparisons)


def _shared(compared: Compared, members: Sequence[Member]) -> SharedComparison:
    """Keep the most machines, then the most experiments, of which no two are known to differ."""
    recorded = _recorded(compared, members)
    alike = _alike(sorted(recorded, key=lambda one: [*one.conditions.values()].count(None)))
    groups = [_agreeing(one, alike) for one in alike]
    chosen = max(groups, key=lambda one: (len({of.machine for of in one.members}), len(one.members)))
    sources = {one.source for one in chosen.members}
    kept = [one for one in recorded if one.member.source in sources]
    left_out = [
        NotCombined(compared, one.member, _in_words([*_conflicts(chosen, one.conditions)]))
        for one in recorded
        if one.member.source not in sources
    ]
    kinds = dict.fromkeys(tuple(one.conditions.items()) for one in kept)
    unknown = dict.fromkeys(subject for kind in kinds for subject, value in kind if value is None)
    return SharedComparison(compared, tuple(one.member for one in kept), tuple(left_out), tuple(unknown))


@dataclass(frozen=True)
class _Recorded:
    """An experiment with all that defines its comparison, by subject; None: not recorded."""

    member: Member
    conditions: Mapping[str, str | None]


@dataclass(frozen=True)
class _Alike:
    """Experiments with the same conditions: fleets have thousands of them, and few kinds."""

    members: Sequence[Member]
    conditions: Mapping[str, str | None]


@dataclass(frozen=True)
class _Group:
    """Experiments that agree in pairs; ``known`` has each subject's value, and the member that told it."""

    members: Sequence[Member]
    known: Mapping[str, tuple[str, Member]]


def _recorded(compared: Compared, members: Sequence[Member]) -> list[_Recorded]:
    """Return all with the same subjects; one that an experiment does not mention was left as it was."""
    found = [
        (one, its.conditions)
        for one in members
        for its in one.finding.comparisons
        if its.compared == compared
    ]
    kinds = {tuple(its.items()): its for _, its in found}
    subjects = dict.fromkeys(subject for its in kinds.values() for subject in its)
    told = {kind: {of: its.get(of, _unmentioned(of)) for of in subjects} for kind, its in kinds.items()}
    return [_Recorded(one, told[tuple(its.items())]) for one, its in found]


def _unmentioned(subject: str) -> str:
    return _NOT_GIVEN if subject.startswith("--") else _UNSET


def _alike(recorded: Sequence[_Recorded]) -> list[_Alike]:
    found: dict[tuple[str | None, ...], list[_Recorded]] = {}
    for one in recorded:  # all have the same subjects in the same order
        found.setdefault(tuple(one.conditions.values()), []).append(one)
    return [_Alike([one.member for one in ones], ones[0].conditions) for ones in found.values()]


def _agreeing(first: _Alike, others: Sequence[_Alike]) -> _Group:
    """Return those that agree with the first and with all taken before them.

    What the first do not know is known from the next that do: they cannot bring two together that differ.
    """
    members, known = [*first.members], _told(first)
    for one in others:
        if one is not first and not [*_conflicts(_Group(members, known), one.conditions)]:
            members += one.members
            known = {**_told(one), **known}
    return _Group(members, known)


def _told(one: _Alike) -> dict[str, tuple[str, Member]]:
    return {of: (value, one.members[0]) for of, value in one.conditions.items() if value is not None}


def _conflicts(group: _Group, conditions: Mapping[str, str | None]) -> Iterator[tuple[str, str, str, Member]]:
    """Yield the subjects that are known to differ, with both values and who told the group's."""
    for subject, value in conditions.items():
        known = group.known.get(subject)
        if value is not None and known is not None and value != known[0]:
            yield subject, value, *known


def _in_words(conflicts: Sequence[tuple[str, str, str, Member]]) -> str:
    subject, its, known, told_by = conflicts[0]
    more = len(conflicts) - 1
    others = "" if not more else f", and {more} more {'difference' if more == 1 else 'differences'}"
    return f"{subject} is {its}, {known} on {told_by.label}{others}"
