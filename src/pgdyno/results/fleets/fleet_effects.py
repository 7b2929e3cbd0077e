"""Effects of one comparison on several machines, and the verdict across them. Pure.

Each machine is a block: effects are estimated within machines and combined by a random-effects model (see
``stats.fleet``). A variant is better only if it is better on the mean of the machines and no machine has the
verdict worse, after correction for the number of machines. The same applies to worse, with signs reversed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgdyno.model.experiments.experiment import Stopping
from pgdyno.model.experiments.fleet import FleetComparison, MachineEffect, MachineSpread, Occasion
from pgdyno.model.experiments.metric import Metric
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.results.fleets.fleet_members import Member
from pgdyno.stats import wording
from pgdyno.stats.decision import adjust, decide_mean
from pgdyno.stats.fleet import (
    EffectsApart,
    across,
    between_interval,
    between_variance,
    predicted_reach,
    repeated,
)
from pgdyno.stats.nested import MeanEstimate

MINIMUM_MACHINES_FOR_VERDICT = 5
"""The same as for rounds (decision 4): machines come in kinds, and fewer are too often of one kind."""

_OPPOSITES = {Decision.BETTER: Decision.WORSE, Decision.WORSE: Decision.BETTER}


@dataclass(frozen=True)
class OwnVerdict:
    """One experiment's verdict on a comparison, uncorrected for other comparisons, and its effect."""

    member: Member
    verdict: Verdict
    effect: MeanEstimate


def fleet_comparison(measured: Sequence[OwnVerdict], metric: Metric) -> FleetComparison:
    """Return a comparison across machines; ``decided`` completes its verdict."""
    by_machine: dict[str, list[OwnVerdict]] = {}
    for one in measured:
        by_machine.setdefault(one.member.machine, []).append(one)
    known = [_on_machine(ones, metric) for ones in by_machine.values()]
    effects = EffectsApart.of([effect for _, effect in known])
    alone = adjust([verdict for verdict, _ in known])
    of, level = measured[0].verdict, _level(measured)
    return FleetComparison(
        of.workload,
        of.variant,
        of.baseline,
        metric.name,
        tuple(
            MachineEffect(machine, verdict, _occasions(ones))
            for (machine, ones), verdict in zip(by_machine.items(), alone, strict=True)
        ),
        _of_mean(across(effects), measured, metric)
        if effects.count > 1
        else replace(_withheld(alone[0], wording.one_machine()), rounds=1),
        _between(effects, level) if effects.count > 1 else None,
        _prediction(effects, level) if effects.count > 1 else None,
        measured[0].member.experiment.operation(of.workload),
    )


def decided(comparisons: Sequence[FleetComparison]) -> tuple[FleetComparison, ...]:
    """Return the comparisons with final verdicts: Holm-corrected, and checked against single machines."""
    verdicts = adjust([one.verdict for one in comparisons])
    pairs = zip(comparisons, verdicts, strict=True)
    return tuple(replace(one, verdict=_decision(verdict, one.machines)) for one, verdict in pairs)


def _on_machine(ones: Sequence[OwnVerdict], metric: Metric) -> tuple[Verdict, MeanEstimate]:
    """Return the verdict on one machine, uncorrected for other machines, and its effect."""
    if len(ones) == 1:
        return ones[0].verdict, ones[0].effect
    effect = repeated(EffectsApart.of([one.effect for one in ones]))
    verdict = _of_mean(effect, ones, metric)
    is_fixed = all(one.member.experiment.design.stopping is Stopping.FIXED for one in ones)
    return verdict if is_fixed else _withheld(verdict, wording.stopped_by_looking()), effect


def _of_mean(estimated: MeanEstimate, measured: Sequence[OwnVerdict], metric: Metric) -> Verdict:
    of = measured[0].verdict
    designs = [one.member.experiment.design for one in measured]
    return decide_mean(
        estimated,
        workload=of.workload,
        metric=metric,
        variant=of.variant,
        baseline=of.baseline,
        level=_level(measured),
        equivalence_margin=min(one.equivalence_margin for one in designs),
        power=designs[0].power,
        blocks=sum(one.verdict.blocks for one in measured),
        void_blocks=sum(one.verdict.void_blocks for one in measured),
    )


def _withheld(verdict: Verdict, reason: str) -> Verdict:
    """Return the verdict with its effect, without interval, p value and decision."""
    return replace(
        verdict,
        decision=Decision.INCONCLUSIVE,
        reason=reason,
        interval=None,
        mde=None,
        p_value=None,
        p_adjusted=None,
        components=None,
        equivalence=None,
        checks={},
        is_withheld=True,
    )


def _level(measured: Sequence[OwnVerdict]) -> float:
    return max(one.member.experiment.design.level for one in measured)


def _between(effects: EffectsApart, level: float) -> MachineSpread:
    low, high = between_interval(effects, level)
    low_sd, sd, high_sd = (math.sqrt(float(one)) for one in (low, between_variance(effects), high))
    return MachineSpread(low_sd, sd, high_sd, level)


def _prediction(effects: EffectsApart, level: float) -> Interval:
    mean, reach = float(effects.means.mean()), float(predicted_reach(effects, level))
    with np.errstate(over="ignore"):  # two machines far apart give an unbounded interval
        low, point, high = np.exp([mean - reach, mean, mean + reach])
    return Interval(float(low), float(point), float(high), level)


def _occasions(ones: Sequence[OwnVerdict]) -> tuple[Occasion, ...]:
    """Return the effect in each of several experiments; empty for a single experiment."""
    return tuple(
        Occasion(one.member.experiment.id, one.member.experiment.created, one.verdict.interval)
        for one in ones
        if len(ones) > 1 and one.verdict.interval is not None
    )


def _decision(verdict: Verdict, machines: Sequence[MachineEffect]) -> Verdict:
    """Return the verdict, or inconclusive if machines are too few or a machine contradicts it."""
    if verdict.interval is None:
        return verdict
    inconclusive = replace(verdict, decision=Decision.INCONCLUSIVE)
    if len(machines) < MINIMUM_MACHINES_FOR_VERDICT:
        reason = wording.too_few_machines(len(machines), MINIMUM_MACHINES_FOR_VERDICT)
        return replace(inconclusive, reason=reason, is_withheld=True)
    against = [
        (one.machine, one.verdict.effect or 1.0) for one in machines if _contradicts(one.verdict, verdict)
    ]
    if against:
        return replace(inconclusive, reason=wording.not_on_all_machines(verdict.reason, against))
    return verdict


def _contradicts(alone: Verdict, verdict: Verdict) -> bool:
    """Whether a machine's verdict is opposite to the mean's, or beyond the margin of an equivalent mean."""
    if verdict.decision in _OPPOSITES:
        return alone.decision is _OPPOSITES[verdict.decision]
    if verdict.equivalence is None or alone.interval is None or alone.decision not in _OPPOSITES:
        return False
    margin = verdict.equivalence.margin
    is_beyond = alone.interval.low > 1 + margin or alone.interval.high < 1 / (1 + margin)
    return verdict.decision is Decision.EQUIVALENT and is_beyond
