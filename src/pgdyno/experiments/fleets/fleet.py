"""Experiments of several machines as one report: their common comparisons, and the other ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.experiments.fleets.fleet_effects import OwnVerdict, decided, fleet_comparison
from pgdyno.experiments.fleets.fleet_members import Given, Member, identity_notes, machines_of, members_of
from pgdyno.experiments.fleets.shared_comparisons import (
    NotCombined,
    SharedComparison,
    comparisons_of,
    shared_comparisons,
)
from pgdyno.experiments.verdicts.analysis import verdict_metrics
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.fleet import Fleet, FleetComparison
from pgdyno.model.fleets.finding import Compared, FleetFinding, FoundComparison

_SAME_EVERYWHERE = "measure the same on all machines: the same command with the same options"


def combine(given: Sequence[Given]) -> Fleet:
    """Return everything that several experiments say about comparisons that they share.

    Raises: UsageError if they are fewer than two, two are the same one, one has no results, they share no
    comparison, or none that they share has a result in two of them.
    """
    for one in given:
        _require_results(one.source, one.finding)
    _require_several(given)
    members = members_of(given)
    shared = shared_comparisons(members)
    comparisons, without_verdict = _comparisons(shared)
    left_out = [*_sentences([*(why for one in shared for why in one.left_out), *without_verdict])]
    if not comparisons:
        raise _nothing_to_combine(members, shared, left_out)
    return Fleet(
        machines=machines_of(members),
        comparisons=decided(comparisons),
        margin=min(one.finding.equivalence_margin for one in members),
        warnings=(
            *(warning for one in members for warning in _warnings(one)),
            *_unknown(shared),
            *identity_notes(members, is_named=given[0].name is not None),
        ),
        left_out=(*left_out, *_alone(members, shared)),
    )


def _comparisons(shared: Sequence[SharedComparison]) -> tuple[list[FleetComparison], list[NotCombined]]:
    """Return every metric that at least two experiments have a verdict on, and which have none and why."""
    found: list[FleetComparison] = []
    missing: list[NotCombined] = []
    for one in shared:
        own = [(member, _of(member.finding, one.compared)) for member in one.members]
        for metric in verdict_metrics():
            known = [(member, its.effects[metric.name]) for member, its in own if metric.name in its.effects]
            measured = [
                OwnVerdict(member, its.verdict, its.effect)
                for member, its in known
                if its.effect is not None and not its.verdict.is_withheld
            ]
            missing += [
                NotCombined(one.compared, member, f"{metric.title} ({its.verdict.reason})")
                for member, its in known
                if its.effect is None or its.verdict.is_withheld
            ]
            if len(measured) > 1:
                found.append(fleet_comparison(measured, metric, own[0][1].operation))
    return found, missing


def _of(finding: FleetFinding, compared: Compared) -> FoundComparison:
    return next(one for one in finding.comparisons if one.compared == compared)


def _sentences(left_out: Sequence[NotCombined]) -> Iterator[str]:
    """Yield each reason once, with all workloads that it concerns."""
    found: dict[tuple[str, str], list[Compared]] = {}
    for one in left_out:
        found.setdefault((one.member.label, one.reason), []).append(one.compared)
    for (label, reason), comparisons in found.items():
        yield f"{label}, {_in_words(comparisons)}: {reason}"


def _require_results(source: str, finding: FleetFinding) -> None:
    if finding.parts:
        raise UsageError(
            f"{source} is put together from several experiments, and has no rounds",
            hint=f"give one of them: {', '.join(finding.parts)}",
        )
    if finding.emulated_machine:
        raise UsageError(
            f"{source} ran emulated, so that its speed is that of no machine",
            detail=f"its server was built for {finding.emulated_machine}",
            hint="leave it out",
        )
    if not finding.comparisons:
        raise UsageError(
            f"{source} compares nothing: it has no verdict",
            detail=f"{finding.experiment}: {finding.question}",
            hint="leave it out; comparisons are made by pgdyno compare, run and accelerate",
        )


def _require_several(given: Sequence[Given]) -> None:
    first: dict[str, Given] = {}
    for one in given:
        for known in (one.finding.experiment, one.finding.blocks_sha256):
            if (other := first.setdefault(known, one)) is not one:
                raise UsageError(
                    f"{other.source} and {one.source} are the same experiment",
                    detail=f"{other.finding.experiment} and {one.finding.experiment} have the same id or the "
                    "same blocks",
                    hint="give each experiment once",
                )
    if len(given) < 2:
        raise UsageError(
            "one experiment says nothing about other machines",
            detail="; ".join(f"given is {one.source}" for one in given),
            hint=f"give those of at least two machines; {_SAME_EVERYWHERE}",
        )


def _nothing_to_combine(
    members: Sequence[Member], shared: Sequence[SharedComparison], left_out: Sequence[str]
) -> UsageError:
    """Return the error for experiments that measured different things, or the same without any result."""
    if any(len(one.members) > 1 for one in shared):
        return UsageError(
            "the experiments share comparisons, but no two of them have a result for the same metric",
            detail="\n".join(left_out),
            hint="measure again with more blocks, on machines that run nothing else",
        )
    return UsageError(
        "the experiments have no comparison in common",
        detail="\n".join((*_what_each_has(members), *left_out)),
        hint=_SAME_EVERYWHERE,
    )


def _what_each_has(members: Sequence[Member]) -> Iterator[str]:
    for one in members:
        yield f"{one.label}: {_in_words(comparisons_of(one.finding))}"


def _alone(members: Sequence[Member], shared: Sequence[SharedComparison]) -> Iterator[str]:
    """Yield the comparisons that only one experiment has."""
    common = {one.compared for one in shared}
    for one in members:
        own = [compared for compared in comparisons_of(one.finding) if compared not in common]
        if own:
            yield f"only {one.label} has {_in_words(own)}"


def _in_words(comparisons: Sequence[Compared]) -> str:
    """Return comparisons by variant: ``a against b on x, y; c against b on x``."""
    workloads: dict[tuple[str, str], list[str]] = {}
    for one in comparisons:
        workloads.setdefault((one.variant, one.baseline), []).append(one.workload)
    return "; ".join(
        f"{variant} against {baseline} on {', '.join(names)}"
        for (variant, baseline), names in workloads.items()
    )


def _warnings(member: Member) -> Iterator[str]:
    finding = member.finding
    yield from (f"{member.label} is {note}" for note in finding.notes)
    for variant, settings in finding.unsafe_settings.items():
        yield f"NOT DURABLE: {variant} on {member.label}: {', '.join(settings)}"
    if not finding.is_complete:
        yield f"{member.label} was interrupted: it did not run to its planned end"


def _unknown(shared: Sequence[SharedComparison]) -> Iterator[str]:
    """Yield the subjects that are not recorded everywhere, so that they may differ."""
    subjects = dict.fromkeys(subject for one in shared if len(one.members) > 1 for subject in one.unknown)
    if subjects:
        yield f"not recorded everywhere, and perhaps not alike: {', '.join(subjects)}"
