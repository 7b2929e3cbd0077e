"""Outcomes of a plan: throughput and tail latency by workload, with bounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

import numpy as np
from scipy import special

from pgdyno.measure.design.phase import phase_of
from pgdyno.measure.verdicts.analysis import log_ratios
from pgdyno.measure.verdicts.failures import is_shown, missed_rate
from pgdyno.measure.verdicts.statements import has_slower_statement
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.failures import FAILED_TRIAL
from pgdyno.model.experiments.metric import P99, TAIL_MEAN, TAIL_MEAN_ALONE, THROUGHPUT
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.model.plans.plan import applied_of
from pgdyno.stats import nested
from pgdyno.stats.inference import DRIFT_LEVEL, MINIMUM_ROUNDS_FOR_VERDICT, drift_p_value
from pgdyno.stats.sample import FloatArray, Sample

TAILS = (TAIL_MEAN, P99)
"""Candidates for the tail metric: the first one that the experiment has."""
BOUND = 0.05
"""The error rate of a bound, one-sided."""
_SAMPLES = 2000  # a bound's error rate of 5 % then has a standard error of 0.5 %
_HALVES_FROM_ROUNDS = 2 * MINIMUM_ROUNDS_FOR_VERDICT
_REGRESSION, _INCONCLUSIVE = 5, 6


@dataclass(frozen=True)
class Estimate:
    """A mean log-ratio with its standard error. Bounds are ratios, each at a one-sided error rate.

    ``bias`` is the standard deviation of a bias of the whole experiment (``Design.bias``). Only
    ``upper_with_bias`` includes it.
    """

    mean: float
    standard_error: float
    df: float
    rounds: int
    bias: float = 0.0

    @property
    def ratio(self) -> float:
        """The estimated ratio."""
        return math.exp(self.mean)

    def lower(self, error: float = BOUND) -> float:
        """Return the lower bound: the true ratio is below it with probability ``error``."""
        return math.exp(self.mean - self._width(error))

    def upper(self, error: float = BOUND) -> float:
        """Return the upper bound: the true ratio is above it with probability ``error``."""
        return math.exp(self.mean + self._width(error))

    def upper_with_bias(self, error: float = BOUND) -> float:
        """Return the upper bound with the bias included in the standard error.

        Its degrees of freedom are those of the rounds. Welch's and Satterthwaite's are too many if few rounds
        happen to agree: with these, an error of 1 % divided by eight was one of 2 to 4 % (simulated).
        """
        error_with_bias = math.hypot(self.standard_error, self.bias)
        return replace(self, standard_error=error_with_bias).upper(error)

    def p_at_most(self, ratio: float) -> float:
        """Return the p-value of the null hypothesis that the true ratio is ``ratio`` or less."""
        return float(special.stdtr(self.df, -(self.mean - math.log(ratio)) / self.standard_error))

    def after(self, rounds: int) -> Estimate:
        """Return the expected estimate after ``rounds`` rounds, all else being equal."""
        share = self.rounds / rounds
        error = self.standard_error * math.sqrt(share)
        return replace(self, standard_error=error, df=self.df / share, rounds=rounds)

    def _width(self, error: float) -> float:
        return float(special.stdtrit(self.df, 1 - error)) * self.standard_error


@dataclass(frozen=True)
class Stalls:
    """The tail over all rounds together: arithmetic mean with the plan / arithmetic mean without it.

    If one round in thirty has a tail ten times as long, this ratio is 1.3; the mean of the rounds' log-ratios
    gives 1.08. ``upper`` is an upper bound at the requested error rate, by a bootstrap over rounds.
    """

    ratio: float
    upper: float
    rounds: int

    def after(self, rounds: int) -> Stalls:
        """Return the expected ratio and bound after ``rounds`` rounds, all else being equal."""
        width = (self.upper - self.ratio) * math.sqrt(self.rounds / rounds)
        return Stalls(self.ratio, self.ratio + width, rounds)


@dataclass(frozen=True)
class Outcome:
    """An experiment's estimates of a plan on one workload; None: no estimate yet.

    ``p99`` is None if it was not measured, or is itself the tail metric. ``stalls`` also describes the tail.
    ``alone`` is the tail in stretches with load on no other server, if ``has_stretches``.
    """

    workload: str
    throughput: Estimate | None
    tail: Estimate | None
    p99: Estimate | None = None
    stalls: Stalls | None = None
    alone: Estimate | None = None
    has_stretches: bool = False


def outcomes_of(experiment: Experiment, variant: str, error: float = BOUND) -> tuple[Outcome, ...]:
    """Return the estimates for every workload; ``error`` is the error of the bound of ``stalls``."""
    measured = {name for block in experiment.blocks for arm in block.arms for name in arm.values}
    tail = next((name for name in TAILS if name in measured), TAILS[-1])
    count = 3 * len(experiment.workloads)
    names = [one.name for one in experiment.variants]
    is_applied = experiment.design.stretch_s > 0 and variant == applied_of(names)

    def estimated(workload: str, metric: str, *, is_gain: bool) -> Estimate | None:
        ratios = log_ratios(experiment.blocks, workload, metric, variant, experiment.baseline)
        rounds = [of_round for _, of_round in sorted(ratios.items())]
        bias = experiment.design.bias
        return estimate(rounds, drift_level=DRIFT_LEVEL / count, is_gain=is_gain, bias=bias)

    return tuple(
        Outcome(
            workload,
            estimated(workload, THROUGHPUT, is_gain=True),
            estimated(workload, tail, is_gain=False),
            estimated(workload, P99, is_gain=False) if tail != P99 else None,
            stalls(*_tails_by_round(experiment, workload, tail, variant), error),
            _alone(experiment, workload, variant),
            has_stretches=is_applied and phase_of(experiment, workload) is not None,
        )
        for workload in experiment.workloads
    )


def _alone(experiment: Experiment, workload: str, variant: str) -> Estimate | None:
    """Return the estimate of the tail with load on one server alone: one figure per round, few rounds."""
    by_round = log_ratios(experiment.blocks, workload, TAIL_MEAN_ALONE, variant, experiment.baseline)
    return estimate_alone([one for of_round in by_round.values() for one in of_round])


def estimate_alone(figures: Sequence[float]) -> Estimate | None:
    """Return the estimate from one log-ratio per round; None for fewer than two, which have no spread."""
    if len(figures) < 2:
        return None
    error = max(float(np.std(figures, ddof=1)) / math.sqrt(len(figures)), nested.RESOLUTION)
    return Estimate(fmean(figures), error, len(figures) - 1.0, len(figures))


def _tails_by_round(
    experiment: Experiment, workload: str, tail: str, variant: str
) -> tuple[list[float], list[float]]:
    """Return each round's mean tail with and without the plan, over the blocks where both have one."""
    by_round: dict[int, list[tuple[float, float]]] = {}
    for block in experiment.blocks:
        if block.workload == workload and not block.void_for(variant, experiment.baseline):
            values = {arm.variant: arm.values.get(tail, 0.0) for arm in block.arms}
            pair = (values.get(variant, 0.0), values.get(experiment.baseline, 0.0))
            if min(pair) > 0:
                by_round.setdefault(block.round, []).append(pair)
    means = [tuple(map(fmean, zip(*of_round, strict=True))) for of_round in by_round.values()]
    return [one for one, _ in means], [other for _, other in means]


def stalls(with_plan: Sequence[float], without: Sequence[float], error: float = BOUND) -> Stalls | None:
    """Return the ratio of two tails over all rounds; None: too few rounds for a bound.

    Shapes: both (rounds,), in the same unit. The bootstrap draws rounds in pairs, so common slowdowns cancel.
    """
    rounds = len(with_plan)
    if rounds < MINIMUM_ROUNDS_FOR_VERDICT:
        return None
    drawn = _drawn(rounds)
    ratios = (drawn @ np.asarray(with_plan)) / (drawn @ np.asarray(without))
    return Stalls(fmean(with_plan) / fmean(without), float(np.quantile(ratios, 1 - error)), rounds)


@cache
def _drawn(rounds: int) -> FloatArray:
    """Return how often each round was drawn, with replacement. Shapes: (samples, rounds)."""
    random = np.random.default_rng(rounds)  # fixed seed: a report always gives the same answer
    return random.multinomial(rounds, np.full(rounds, 1 / rounds), size=_SAMPLES).astype(float)


def estimate(
    rounds: Sequence[Sequence[float]],
    *,
    drift_level: float = DRIFT_LEVEL,
    is_gain: bool = True,
    bias: float = 0.0,
) -> Estimate | None:
    """Return the estimate from log-ratios by round; from the worse half if drift is evident.

    Shapes: rounds[round][block]. ``is_gain``: whether higher is better. ``bias``: see ``Estimate``. None: too
    few rounds for any bound.
    """
    sample = Sample.of(rounds)
    if sample.rounds < MINIMUM_ROUNDS_FOR_VERDICT or nested.missing(sample):
        return None
    whole = replace(_estimate(sample), bias=bias)
    if sample.rounds < _HALVES_FROM_ROUNDS or float(drift_p_value(sample.round_means)) > drift_level:
        return whole
    half = sample.rounds // 2
    halves = [replace(_estimate(Sample.of(part)), bias=bias) for part in (rounds[:half], rounds[-half:])]
    return (min if is_gain else max)(halves, key=lambda one: one.lower() if is_gain else one.upper())


def _estimate(sample: Sample) -> Estimate:
    found = nested.estimate(sample)
    error = max(float(found.standard_error), nested.RESOLUTION)
    return Estimate(float(found.mean), error, float(found.df), sample.rounds)


def gate_code(experiment: Experiment) -> int:
    """Return 5 if throughput regressed anywhere, else 6 if anything is inconclusive or unmeasured, else 0.

    A variant has also regressed if it misses a background rate that the baseline keeps, if more of its
    transactions fail, or if a statement is slower under the same load.
    """
    throughput = [v for v in experiment.verdicts if v.metric == THROUGHPUT]
    decisions = [verdict.decision for verdict in throughput]
    has_fallen_behind = any(_has_fallen_behind(experiment, v) for v in throughput)
    if Decision.WORSE in decisions or has_fallen_behind or has_slower_statement(experiment):
        return _REGRESSION
    is_unmeasured = not decisions or any(FAILED_TRIAL in note for note in experiment.notes)
    return _INCONCLUSIVE if is_unmeasured or Decision.INCONCLUSIVE in decisions else 0


def _has_fallen_behind(experiment: Experiment, verdict: Verdict) -> bool:
    blocks, workload = experiment.blocks, verdict.workload
    missed, baseline_missed = (
        missed_rate(blocks, workload, name) for name in (verdict.variant, verdict.baseline)
    )
    return (missed is not None and baseline_missed is None) or is_shown(
        blocks, workload, verdict.variant, verdict.baseline
    )
