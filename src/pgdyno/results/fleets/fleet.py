"""Combines experiments of several machines: their common comparisons, and those left out. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import to_document
from pgdyno.measure.verdicts.analysis import judge, mean_effect, verdict_metrics
from pgdyno.measure.verdicts.durability import withhold
from pgdyno.measure.verdicts.failures import withhold as without_failing
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.fleet import Fleet, FleetComparison
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.results.fleets.fleet_effects import OwnVerdict, decided, fleet_comparison
from pgdyno.results.fleets.fleet_members import Member, identity_notes, machines_of, members_of
from pgdyno.results.fleets.shared_comparisons import (
    Compared,
    NotCombined,
    SharedComparison,
    comparisons_of,
    shared_comparisons,
)

_SIMULATED = "SIMULATED: "
_SAME_EVERYWHERE = "run the same command with the same options on all machines"


def combine(given: Sequence[Member]) -> Fleet:
    """Return the combined results of the comparisons that several experiments share.

    Raises: UsageError for fewer than two experiments, for the same one twice, for one without results, if
    they share no comparison, or if no shared comparison has a result in two of them.
    """
    for one in given:
        _require_results(one.source, one.experiment)
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
        margin=min(one.experiment.design.equivalence_margin for one in members),
        warnings=(
            *(warning for one in members for warning in _warnings(one)),
            *_unknown(shared),
            *identity_notes(members, is_named=bool(given[0].machine)),
        ),
        left_out=(*left_out, *_alone(members, shared)),
    )


def _comparisons(shared: Sequence[SharedComparison]) -> tuple[list[FleetComparison], list[NotCombined]]:
    """Return a comparison per metric with verdicts in two or more experiments, and those without verdicts."""
    found: list[FleetComparison] = []
    missing: list[NotCombined] = []
    for each in shared:
        own = [(member, _verdicts(each.compared, member.experiment)) for member in each.members]
        for metric in verdict_metrics():
            measured = []
            for member, verdict in [(one, by[metric.name]) for one, by in own if metric.name in by]:
                if verdict.interval is None or verdict.is_withheld:
                    missing.append(NotCombined(each.compared, member, f"{metric.title} ({verdict.reason})"))
                else:
                    at = (verdict.workload, metric.name, verdict.variant)
                    measured.append(OwnVerdict(member, verdict, mean_effect(member.experiment, *at)))
            if len(measured) > 1:
                found.append(fleet_comparison(measured, metric))
    return found, missing


def _verdicts(compared: Compared, experiment: Experiment) -> dict[str, Verdict]:
    """Return the verdicts on a comparison by metric, without correction for other comparisons."""
    judged = judge(
        experiment.blocks,
        workloads=[compared.workload],
        variants=[one.name for one in experiment.variants],
        baseline=experiment.baseline,
        design=experiment.design,
    )
    found = without_failing(withhold(judged, experiment), experiment.blocks)
    return {one.metric: one for one in found if one.variant == compared.variant}


def _sentences(left_out: Sequence[NotCombined]) -> Iterator[str]:
    """Yield each reason once, with all comparisons that it applies to."""
    found: dict[tuple[str, str], list[Compared]] = {}
    for one in left_out:
        found.setdefault((one.member.label, one.reason), []).append(one.compared)
    for (label, reason), comparisons in found.items():
        yield f"{label}, {_in_words(comparisons)}: {reason}"


def _require_results(source: str, experiment: Experiment) -> None:
    if experiment.parts:
        raise UsageError(
            f"{source} combines several experiments and has no rounds of its own",
            hint=f"give one of them: {', '.join(part.experiment for part in experiment.parts)}",
        )
    if experiment.emulated_machine:
        raise UsageError(
            f"{source} ran emulated: its speed is not that of a real machine",
            detail=f"its server was built for {experiment.emulated_machine}",
            hint="leave it out",
        )
    if not experiment.verdicts:
        raise UsageError(
            f"{source} compares nothing: it has no verdict",
            detail=f"{experiment.id}: {experiment.question}",
            hint="leave it out; comparisons are made by pgdyno compare, run and accelerate",
        )


def _require_several(given: Sequence[Member]) -> None:
    first: dict[str, Member] = {}
    for one in given:
        blocks = json.dumps(to_document(one.experiment.blocks)).encode()
        for known in (one.experiment.id, hashlib.sha256(blocks).hexdigest()):
            if (other := first.setdefault(known, one)) is not one:
                raise UsageError(
                    f"{other.source} and {one.source} are the same experiment",
                    detail=f"{other.experiment.id} and {one.experiment.id} have the same id or the "
                    "same blocks",
                    hint="give each experiment once",
                )
    if len(given) < 2:
        raise UsageError(
            "one experiment is not enough to combine machines",
            detail="; ".join(f"given: {one.source}" for one in given),
            hint=f"give experiments of at least two machines; {_SAME_EVERYWHERE}",
        )


def _nothing_to_combine(
    members: Sequence[Member], shared: Sequence[SharedComparison], left_out: Sequence[str]
) -> UsageError:
    """Return the error for experiments without a common comparison, or without results for one."""
    if any(len(one.members) > 1 for one in shared):
        return UsageError(
            "the experiments share comparisons, but no two of them have a result for the same metric",
            detail="\n".join(left_out),
            hint="measure again with more blocks, on machines that run nothing else",
        )
    each = [f"{one.label}: {_in_words(comparisons_of(one.experiment))}" for one in members]
    return UsageError(
        "the experiments have no comparison in common",
        detail="\n".join((*each, *left_out)),
        hint=_SAME_EVERYWHERE,
    )


def _alone(members: Sequence[Member], shared: Sequence[SharedComparison]) -> Iterator[str]:
    """Yield a sentence per experiment on the comparisons that no other experiment has."""
    common = {one.compared for one in shared}
    for one in members:
        if own := [compared for compared in comparisons_of(one.experiment) if compared not in common]:
            yield f"only {one.label} has {_in_words(own)}"


def _in_words(comparisons: Sequence[Compared]) -> str:
    """Return comparisons grouped by variant: ``a against b on x, y; c against b on x``."""
    workloads: dict[str, list[str]] = {}
    for one in comparisons:
        workloads.setdefault(f"{one.variant} against {one.baseline}", []).append(one.workload)
    return "; ".join(f"{which} on {', '.join(names)}" for which, names in workloads.items())


def _warnings(member: Member) -> Iterator[str]:
    experiment = member.experiment
    yield from (f"{member.label} is {note}" for note in experiment.notes if note.startswith(_SIMULATED))
    for variant in experiment.variants:
        if not variant.is_durable:
            yield f"NOT DURABLE: {variant.name} on {member.label}: {', '.join(variant.unsafe_settings)}"
    if not experiment.is_complete:
        yield f"{member.label} was interrupted: it did not run to its planned end"


def _unknown(shared: Sequence[SharedComparison]) -> Iterator[str]:
    """Yield a warning about subjects that some experiments do not record and that may therefore differ."""
    subjects = dict.fromkeys(subject for one in shared if len(one.members) > 1 for subject in one.unknown)
    if subjects:
        yield f"not recorded in all experiments, possibly different: {', '.join(subjects)}"
