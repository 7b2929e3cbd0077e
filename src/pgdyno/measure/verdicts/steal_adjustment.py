"""Effects of alternating trials, adjusted for the CPU time that the hypervisor stole from each.

Trials of ten seconds are far apart, so a busy neighbour can hit one arm and not the other. Steal time
explains nearly all of that noise (docs/decisions/0030), and is known. The adjusted effect is reported in
addition to the verdict and decides nothing: the verdict's interval needs no model of the influence of steal
time.

An effect is adjusted only if steal time cannot be an effect of the arm. Every condition is tested here.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base.facts import Unknown
from pgdyno.host.cpu_idling import idling_files
from pgdyno.measure.blocks.blocks import BY_OTHERS
from pgdyno.measure.verdicts.analysis import verdict_metrics
from pgdyno.model.experiments.experiment import DesignKind, Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.covariate import Trial, adjust_for_covariate, differs_between_arms

STOLEN = "steal_share"
LEAST_TRIALS = 12  # the smallest validated number; fewer cannot estimate the influence of steal time
LEAST_SD = 0.01  # of the steal share: at the usual slope of -5, it changes throughput by 5 %
DIFFERS_AT = 0.10  # p-value; above the usual 5 %, because missing a difference is worse than refusing

_WAKES = frozenset({"io_method", "commit_delay", "commit_siblings"})
_WAKING_FILES = frozenset({"/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll"})


@dataclass(frozen=True)
class AdjustedEffect:
    """A variant's ratio to the baseline at equal steal time; 1.0 = no change."""

    metric: str
    variant: str
    interval: Interval


@dataclass(frozen=True)
class Adjustment:
    """One workload's adjusted effects; empty, with a reason, if steal time may depend on the variant.

    ``lowest`` and ``highest`` are the extreme steal shares of the trials.
    """

    workload: str
    baseline: str
    trials: int
    lowest: float
    highest: float
    effects: tuple[AdjustedEffect, ...] = ()
    reason: str = ""


def touching_wakeups(experiment: Experiment) -> tuple[str, ...]:
    """Return the differing settings and files of variants that affect CPU idling or wake-ups."""
    given = [variant.settings for variant in experiment.variants]
    names = dict.fromkeys(name for settings in given for name in settings)
    differing = [name for name in names if len({settings.get(name) for settings in given}) > 1]
    idling = idling_files(differing)
    return tuple(name for name in differing if name in _WAKES | _WAKING_FILES or name in idling)


def adjustments(experiment: Experiment) -> tuple[Adjustment, ...]:
    """Return the adjustments of workloads in alternating trials with clearly varying steal time.

    None for steps, cells of grids and TPC-H-like queries, which have separate tables.
    """
    if (
        experiment.design.kind is not DesignKind.ALTERNATING
        or experiment.tpch
        or len(experiment.variants) < 2
    ):
        return ()
    plain = [w for w in experiment.workloads if w not in experiment.operations and w not in experiment.cells]
    found = (_adjustment(experiment, workload) for workload in plain)
    return tuple(one for one in found if one is not None)


def _adjustment(experiment: Experiment, workload: str) -> Adjustment | None:
    primary, *others = [metric.name for metric in verdict_metrics()]
    trials = _trials(experiment, workload, primary)
    stolen = [trial.covariate for trial in trials]
    if len(stolen) < 2 or statistics.stdev(stolen) < LEAST_SD:
        return None
    about = (workload, experiment.baseline, len(trials), min(stolen), max(stolen))
    if reason := _refusal(experiment, trials):
        return Adjustment(*about, reason=reason)
    effects: list[AdjustedEffect] = []
    for metric in (primary, *others):
        of_metric = _trials(experiment, workload, metric)
        if len(of_metric) < LEAST_TRIALS:
            continue
        adjusted = adjust_for_covariate(of_metric, experiment.design.level)
        if isinstance(adjusted, Unknown):
            return Adjustment(*about, reason=adjusted.reason)
        names = _arms(experiment)
        effects += [AdjustedEffect(metric, names[arm], bounds) for arm, bounds in adjusted.effects.items()]
    return Adjustment(*about, effects=tuple(effects))


def _refusal(experiment: Experiment, trials: list[Trial]) -> str | None:
    """Return why steal time may be an effect of the variants, or is confounded with them; None if neither."""
    if names := touching_wakeups(experiment):
        return f"{', '.join(names)} changes CPU idling or wake-ups, and thereby steal time"
    if experiment.burstable_type:
        return f"{experiment.burstable_type} has CPU credits: steal time depends on earlier use"
    if len(trials) < LEAST_TRIALS:
        return f"steal time is known for only {len(trials)} trials; at least {LEAST_TRIALS} are needed"
    p_value = differs_between_arms(trials)
    if p_value is not None and p_value < DIFFERS_AT:
        return f"the steal shares of the variants differ (p = {p_value:.2g}), maybe because of the variants"
    return None


def _arms(experiment: Experiment) -> list[str]:
    """Return the variants, the baseline first."""
    names = [variant.name for variant in experiment.variants]
    return [experiment.baseline, *(name for name in names if name != experiment.baseline)]


def _trials(experiment: Experiment, workload: str, metric: str) -> list[Trial]:
    """Return the usable trials, including those that are void only because of steal time.

    Rounds with a single one are left out: they have no information on differences between variants.
    """
    arms = {name: index for index, name in enumerate(_arms(experiment))}
    found = [
        Trial(block.round, arms[arm.variant], arm.audit[STOLEN], math.log(arm.values[metric]))
        for block in experiment.blocks
        if block.workload == workload
        for arm in block.arms
        if STOLEN in arm.audit and arm.values.get(metric, 0.0) > 0
        if arm.void is None or BY_OTHERS[STOLEN] in arm.void
    ]
    return list(_not_alone_in_round(found))


def _not_alone_in_round(trials: list[Trial]) -> Iterator[Trial]:
    of_round = Counter(trial.round for trial in trials)
    return (trial for trial in trials if of_round[trial.round] > 1)
