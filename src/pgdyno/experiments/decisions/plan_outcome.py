"""Outcomes of a plan: its throughput and its tail of latency by workload, with their bounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from pgdyno.experiments.verdicts.analysis import log_ratios
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import P99, TAIL_MEAN, THROUGHPUT
from pgdyno.stats import nested
from pgdyno.stats.inference import DRIFT_LEVEL, MINIMUM_ROUNDS_FOR_VERDICT, drift_p_value
from pgdyno.stats.sample import Sample

TAILS = (TAIL_MEAN, P99)
"""Which metric is the tail: the first that the experiment has."""
BOUND = 0.05
"""The error rate of a bound, one-sided."""
_HALVES_FROM_ROUNDS = 2 * MINIMUM_ROUNDS_FOR_VERDICT


@dataclass(frozen=True)
class Estimate:
    """A mean log-ratio with its standard error. Bounds are ratios, each at a one-sided error rate."""

    mean: float
    standard_error: float
    df: float
    rounds: int

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.mean)

    def lower(self, error: float = BOUND) -> float:
        """Return the ratio that the true one is below with probability ``error``."""
        return math.exp(self.mean - self._width(error))

    def upper(self, error: float = BOUND) -> float:
        """Return the ratio that the true one is above with probability ``error``."""
        return math.exp(self.mean + self._width(error))

    def p_at_most(self, ratio: float) -> float:
        """Return the p-value against a true ratio of ``ratio`` or less."""
        return float(special.stdtr(self.df, -(self.mean - math.log(ratio)) / self.standard_error))

    def after(self, rounds: int) -> Estimate:
        """Return the expected estimate after ``rounds`` rounds, all else being equal."""
        share = self.rounds / rounds
        return Estimate(self.mean, self.standard_error * math.sqrt(share), self.df / share, rounds)

    def _width(self, error: float) -> float:
        return float(special.stdtrit(self.df, 1 - error)) * self.standard_error


@dataclass(frozen=True)
class Outcome:
    """An experiment's estimates of a plan on one workload; None: no estimate yet."""

    workload: str
    throughput: Estimate | None
    tail: Estimate | None


def outcomes_of(experiment: Experiment, variant: str) -> tuple[Outcome, ...]:
    """Return the estimates for every workload of an experiment."""
    measured = {name for block in experiment.blocks for arm in block.arms for name in arm.values}
    tail = next((name for name in TAILS if name in measured), TAILS[-1])
    count = 2 * len(experiment.workloads)

    def estimated(workload: str, metric: str, *, is_gain: bool) -> Estimate | None:
        ratios = log_ratios(experiment.blocks, workload, metric, variant, experiment.baseline)
        rounds = [of_round for _, of_round in sorted(ratios.items())]
        return estimate(rounds, drift_level=DRIFT_LEVEL / count, is_gain=is_gain)

    return tuple(
        Outcome(
            workload,
            estimated(workload, THROUGHPUT, is_gain=True),
            estimated(workload, tail, is_gain=False),
        )
        for workload in experiment.workloads
    )


def estimate(
    rounds: Sequence[Sequence[float]], *, drift_level: float = DRIFT_LEVEL, is_gain: bool = True
) -> Estimate | None:
    """Return the estimate of log-ratios by round; of the worse half where they drift evidently.

    Shapes: rounds[round][block]. ``is_gain``: whether more is better. None: too few rounds for any bound.
    """
    sample = Sample.of(rounds)
    if sample.rounds < MINIMUM_ROUNDS_FOR_VERDICT or nested.missing(sample):
        return None
    whole = _estimate(sample)
    if sample.rounds < _HALVES_FROM_ROUNDS or float(drift_p_value(sample.round_means)) > drift_level:
        return whole
    half = sample.rounds // 2
    halves = [_estimate(Sample.of(part)) for part in (rounds[:half], rounds[-half:])]
    return (min if is_gain else max)(halves, key=lambda one: one.lower() if is_gain else one.upper())


def _estimate(sample: Sample) -> Estimate:
    found = nested.estimate(sample)
    error = max(float(found.standard_error), nested.RESOLUTION)
    return Estimate(float(found.mean), error, float(found.df), sample.rounds)
