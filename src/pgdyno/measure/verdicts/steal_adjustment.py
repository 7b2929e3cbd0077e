"""Effects of whole trials, adjusted for the CPU time stolen from each.

The hypervisor steals it.

Trials of ten seconds are far apart, so that one arm can meet a busy neighbour and the other not. What was
stolen explains nearly all of that (docs/decisions/0030), and is known. The adjusted effect stands beside the
verdict and decides nothing: the verdict's interval needs no model of what stolen time does.

There is one only if stolen time cannot be an effect of the arm itself. Every condition is tested here.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base.facts import Unknown
from pgdyno.host.awake import idling_files
from pgdyno.measure.blocks.blocks import BY_OTHERS
from pgdyno.measure.verdicts.analysis import verdict_metrics
from pgdyno.model.experiments.experiment import DesignKind, Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.covariate import Trial, adjust_for_covariate, differs_between_arms

STOLEN = "steal_share"
LEAST_TRIALS = 12  # fewer leave too little to tell what stolen time does: the smallest that was validated
LEAST_SD = 0.01  # of the share stolen: at the usual slope of -5 it moves throughput by 5 %
DIFFERS_AT = 0.10  # p-value; above the usual 5 %, because to overlook a difference is worse than to refuse

_WAKES = frozenset({"io_method", "commit_delay", "commit_siblings"})
_WAKING_FILES = frozenset({"/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll"})


@dataclass(frozen=True)
class AdjustedEffect:
    """A variant against the baseline as if the same had been stolen from all; 1.0 = no change."""

    metric: str
    variant: str
    interval: Interval


@dataclass(frozen=True)
class Adjustment:
    """One workload's adjusted effects; none, and why, where stolen time may be an effect of the variant.

    ``lowest`` and ``highest`` are the shares of the CPU time that were stolen from a trial.
    """

    workload: str
    baseline: str
    trials: int
    lowest: float
    highest: float
    effects: tuple[AdjustedEffect, ...] = ()
    reason: str = ""


def touching_wakeups(experiment: Experiment) -> tuple[str, ...]:
    """Return the settings and files by which variants differ that change how CPUs idle or are woken."""
    given = [variant.settings for variant in experiment.variants]
    names = dict.fromkeys(name for settings in given for name in settings)
    differing = [name for name in names if len({settings.get(name) for settings in given}) > 1]
    idling = idling_files(differing)
    return tuple(name for name in differing if name in _WAKES | _WAKING_FILES or name in idling)


def adjustments(experiment: Experiment) -> tuple[Adjustment, ...]:
    """Return one for each workload of whole trials from which clearly more or less was stolen.

    Steps of longer workloads, cells of grids and single queries have tables of their own, and none of this.
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
    """Return why stolen time may be an effect of the variants, or cannot be told from them."""
    if names := touching_wakeups(experiment):
        return f"{', '.join(names)} changes how CPUs idle or are woken, and with that how much is stolen"
    if experiment.burstable_type:
        return f"{experiment.burstable_type} has CPU credits: stolen time depends on earlier use"
    if len(trials) < LEAST_TRIALS:
        return f"only {len(trials)} trials tell how much was stolen, and at least {LEAST_TRIALS} have to"
    p_value = differs_between_arms(trials)
    if p_value is not None and p_value < DIFFERS_AT:
        return (
            f"the variants lost different shares of their CPU time (p = {p_value:.2g}), maybe by themselves"
        )
    return None


def _arms(experiment: Experiment) -> list[str]:
    """Return the variants, the baseline first."""
    names = [variant.name for variant in experiment.variants]
    return [experiment.baseline, *(name for name in names if name != experiment.baseline)]


def _trials(experiment: Experiment, workload: str, metric: str) -> list[Trial]:
    """Return the trials that tell, those included that do not count only because too much was stolen.

    A round with one of them says nothing about a difference between variants.
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
    return list(_in_company(found))


def _in_company(trials: list[Trial]) -> Iterator[Trial]:
    of_round = Counter(trial.round for trial in trials)
    return (trial for trial in trials if of_round[trial.round] > 1)
