"""Compute verdicts from blocks.

Remove seat effects: for four or more arms that change seats from round to round.

A seat is a data copy and a position in the start order. Arms change seats from round to round, so that each
arm has each seat (a Latin square). A seat's speed therefore cancels in an arm's mean, but not in the spread
of its rounds: on a machine with non-uniform memory, that exceeded all other noise together.

    symbol  meaning                                                          shape     unit
    R, k    rounds, arms                                                     ()        1
    m_ra    ln of the metric of arm a in round r, mean of its blocks         (R, k)    1
    ρ_r, α_a, s_j   effects of round, arm and seat: m_ra = ρ_r + α_a + s_seat(r, a) + e
    f       widening factor of the rounds' spread                            ()        1

The three are fitted by least squares. The k - 1 seat effects cost a pair of arms one of its R - 1 degrees of
freedom. Deviations of rounds are therefore widened by f = √((R - 1)/(R - 2)) · t(R - 2)/t(R - 1): methods
that assume R - 1 degrees of freedom for R rounds then have the right coverage. Simulated with and without
seat effects, intervals cover 95 to 97 %.

Two or three arms gain little, and have too few rounds for a fit: their series are not changed.

Source: Montgomery (2017), Design and Analysis of Experiments, §4.2 (Latin squares).

Contrasts of arms: weighted sums of log metrics, within the blocks in which all arms count.

    symbol  meaning                                                          unit
    m_a     metric of arm a in a block                                       any
    s_a     effect of arm a's seat in that round (seat_effects)              1
    c_a     weight of arm a; the weights of a contrast sum to 0              1

    contrast = exp( mean over rounds and blocks of Σ c_a (ln m_a - s_a) )

A pair of arms has a constant bias throughout an experiment (``Design.bias``), with half of its variance from
each arm. The variance of a contrast's bias is b² Σ c_a² / 2.

All returned contrasts of one call use the same blocks. Identities between contrasts therefore hold exactly
between their point estimates: the parts of a sum add up. A contrast is left out if significantly more
transactions failed on one of its arms than on another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.measure.design.schedule import seats
from pgdyno.measure.verdicts.failures import REQUIRED_BACKGROUND_SHARE, is_any_shown, missed_rate, withhold
from pgdyno.model.experiments.experiment import Block, Design, DesignKind, Experiment, Stopping
from pgdyno.model.experiments.metric import METRICS, THROUGHPUT, Metric
from pgdyno.model.experiments.verdict import Interval, Verdict
from pgdyno.stats.decision import adjust, decide
from pgdyno.stats.nested import MeanEstimate, estimate, mean_interval, with_bias
from pgdyno.stats.sample import FloatArray, Sample

LEAST_ARMS = 4
_WIDENED_FOR = 0.995


@dataclass(frozen=True)
class SeatEffects:
    """Seat effects on one metric of one workload; ``arms`` are in the order of their first seats."""

    arms: tuple[str, ...]
    effects: tuple[float, ...]  # on log scale, mean 0
    rounds: int

    @property
    def spread(self) -> float:
        """The ratio of the fastest seat to the slowest, minus 1."""
        return math.expm1(max(self.effects) - min(self.effects))

    def removed(
        self, series: Mapping[int, Sequence[float]], variant: str, baseline: str
    ) -> dict[int, list[float]]:
        """Return ln(variant / baseline) by round without seat effects, with widened spread.

        Shapes: series[round][block].
        """
        return widened(
            {
                round_: [value - (self.of(round_, variant) - self.of(round_, baseline)) for value in of_round]
                for round_, of_round in series.items()
            }
        )

    def of(self, round_: int, variant: str) -> float:
        """Return the effect, on log scale, of an arm's seat in a round."""
        return self.effects[seats(len(self.arms), round_)[self.arms.index(variant)]]


def widened(series: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
    """Return the series with the deviations of its rounds widened by f. Shapes: series[round][block]."""
    means = {round_: sum(of_round) / len(of_round) for round_, of_round in sorted(series.items())}
    if not means:
        return {}
    mean, more = sum(means.values()) / len(means), widening(len(means)) - 1
    return {round_: [value + more * (means[round_] - mean) for value in series[round_]] for round_ in means}


def widening(rounds: int) -> float:
    """Return f at the quantile that multiple comparisons need: conservative for 95 %."""
    quantiles = special.stdtrit(np.array([rounds - 2, rounds - 1], dtype=float), _WIDENED_FOR)
    return math.sqrt((rounds - 1) / (rounds - 2)) * float(quantiles[0] / quantiles[1])


def seat_effects(
    blocks: Sequence[Block], workload: str, metric: str, variants: Sequence[str], design: Design
) -> SeatEffects | None:
    """Return the seat effects; None if they cannot be estimated, or need not be.

    Estimation needs at least four arms in turns, a number of rounds fixed beforehand, and at least as many
    rounds as arms in which all arms count, evenly spread over the seats.
    """
    if (
        len(variants) < LEAST_ARMS
        or design.kind is not DesignKind.DUET
        or design.stopping is not Stopping.FIXED
    ):
        return None
    rounds = _round_means(blocks, workload, metric, variants)
    turns = Counter(round_ % len(variants) for round_ in rounds)
    if len(turns) < len(variants) or max(turns.values()) > min(turns.values()) + 1:
        return None
    fitted = _fitted(list(rounds), np.array(list(rounds.values())))
    return SeatEffects(tuple(variants), tuple(map(float, fitted)), len(rounds))


def _round_means(
    blocks: Sequence[Block], workload: str, metric: str, variants: Sequence[str]
) -> dict[int, list[float]]:
    """Return each arm's mean log metric by round, from the blocks in which all arms count."""
    found: dict[int, list[list[float]]] = {}
    for block in blocks:
        values = {arm.variant: arm.values.get(metric, 0.0) for arm in block.arms}
        is_whole = block.workload == workload and not block.void_for(*variants)
        if is_whole and all(values.get(name, 0.0) > 0 for name in variants):
            found.setdefault(block.round, []).append([math.log(values[name]) for name in variants])
    return {round_: np.mean(of_round, axis=0).tolist() for round_, of_round in sorted(found.items())}


def _fitted(rounds: Sequence[int], means: FloatArray) -> FloatArray:
    """Return the seat effects, with mean 0. Shapes: rounds (R,), means (R, k), returned (k,)."""
    count, arms = means.shape
    taken = np.array([seats(arms, round_) for round_ in rounds])
    columns = np.zeros((count, arms, count + 2 * arms))
    for row in range(count):
        for arm in range(arms):
            columns[row, arm, [row, count + arm, count + arms + taken[row, arm]]] = 1
    solved = np.linalg.lstsq(columns.reshape(count * arms, -1), means.ravel())[0]
    effects = np.asarray(solved[count + arms :], dtype=np.float64)
    return np.asarray(effects - effects.mean())


Weights = Mapping[str, float]
"""Weights of the arms in a contrast, by arm name."""


def contrast_intervals(
    experiment: Experiment,
    workload: str,
    contrasts: Mapping[str, Weights],
    *,
    metric: str = THROUGHPUT,
    level: float | None = None,
) -> dict[str, Interval]:
    """Return the ratio of each contrast with its interval, at ``level`` or the design's level.

    Without contrasts of arms that failed transactions make incomparable; empty if there are too few
    rounds for an interval.
    """
    comparable = {
        name: weights
        for name, weights in contrasts.items()
        if not is_any_shown(experiment.blocks, workload, list(weights))
    }
    series, is_seated = _series(experiment, workload, comparable, metric)
    wanted = experiment.design.level if level is None else level
    return _intervals(series, wanted, _biases(experiment, comparable), is_seated=is_seated)


def _series(
    experiment: Experiment, workload: str, contrasts: Mapping[str, Weights], metric: str
) -> tuple[dict[str, dict[int, list[float]]], bool]:
    """Return the values of each contrast by round, and whether seat effects were removed from them."""
    names = list(dict.fromkeys(name for weights in contrasts.values() for name in weights))
    arms = [one.name for one in experiment.variants]
    by_seat = seat_effects(experiment.blocks, workload, metric, arms, experiment.design)
    series: dict[str, dict[int, list[float]]] = {name: {} for name in contrasts}
    for block in experiment.blocks:
        logs = dict(_logs(block, workload, metric, names, by_seat))
        if len(logs) == len(names):
            for name, weights in contrasts.items():
                value = sum(weight * logs[arm] for arm, weight in weights.items())
                series[name].setdefault(block.round, []).append(value)
    return series, by_seat is not None


def _biases(experiment: Experiment, contrasts: Mapping[str, Weights]) -> dict[str, float]:
    return {
        name: experiment.design.bias * math.hypot(*weights.values()) / math.sqrt(2)
        for name, weights in contrasts.items()
    }


def _intervals(
    series: Mapping[str, dict[int, list[float]]],
    level: float,
    biases: Mapping[str, float],
    *,
    is_seated: bool,
) -> dict[str, Interval]:
    found = {
        name: mean_interval([*(widened(one) if is_seated else one).values()], level, bias=biases[name])
        for name, one in series.items()
    }
    known = {name: one for name, one in found.items() if not isinstance(one, Unknown)}
    return known if len(known) == len(series) else {}


def _logs(
    block: Block, workload: str, metric: str, names: list[str], by_seat: SeatEffects | None
) -> Iterator[tuple[str, float]]:
    """Yield the log of each arm's metric in a block; nothing unless all arms count in it."""
    if block.workload != workload or block.void_for(*names):
        return
    for arm in block.arms:
        value = arm.values.get(metric, 0.0)
        if arm.variant in names and value > 0:
            seat = 0.0 if by_seat is None else by_seat.of(block.round, arm.variant)
            yield arm.variant, math.log(value) - seat


def verdict_metrics() -> tuple[Metric, ...]:
    """Return the metrics that get verdicts; the first is the primary one."""
    return tuple(metric for metric in METRICS.values() if metric.has_verdict)


def log_ratios(
    blocks: Sequence[Block], workload: str, metric: str, variant: str, baseline: str
) -> dict[int, list[float]]:
    """Return ln(variant / baseline) by round, of non-void blocks in which both arms have the metric."""
    series: dict[int, list[float]] = {}
    for block in blocks:
        if block.workload != workload or block.void_for(variant, baseline):
            continue
        values = {arm.variant: arm.values.get(metric, 0.0) for arm in block.arms}
        if values.get(variant, 0.0) > 0 and values.get(baseline, 0.0) > 0:
            series.setdefault(block.round, []).append(math.log(values[variant] / values[baseline]))
    return series


def analyse(
    blocks: Sequence[Block],
    *,
    workloads: Sequence[str],
    variants: Sequence[str],
    baseline: str,
    design: Design,
) -> tuple[Verdict, ...]:
    """Return the verdict for every workload, metric and variant except the baseline, corrected by Holm.

    No verdict favours a variant with too many failed transactions.
    """
    judged = judge(blocks, workloads=workloads, variants=variants, baseline=baseline, design=design)
    return withhold(adjust(judged), blocks)


def judge(
    blocks: Sequence[Block],
    *,
    workloads: Sequence[str],
    variants: Sequence[str],
    baseline: str,
    design: Design,
) -> list[Verdict]:
    """Return the same verdicts without correction for multiple comparisons.

    A metric that no block of a workload has gets no verdict, unless it is the primary one: a single execution
    has no percentile and no CPU time.
    """
    measured = {(block.workload, name) for block in blocks for arm in block.arms for name in arm.values}
    primary = verdict_metrics()[0]
    by_seat = {
        (workload, metric): seat_effects(blocks, workload, metric.name, variants, design)
        for workload in workloads
        for metric in verdict_metrics()
        if metric is primary or (workload, metric.name) in measured
    }
    return [
        _verdict(blocks, workload, metric, (variant, baseline), design, by_seat[workload, metric])
        for workload in workloads
        for variant in variants
        if variant != baseline
        for metric in verdict_metrics()
        if (workload, metric) in by_seat
    ]


def mean_effect(experiment: Experiment, workload: str, metric: str, variant: str) -> MeanEstimate:
    """Return the mean log-ratio, with its standard error, behind a verdict with an interval."""
    names = [one.name for one in experiment.variants]
    by_seat = seat_effects(experiment.blocks, workload, metric, names, experiment.design)
    arms = (variant, experiment.baseline)
    sample = Sample.of(_ratios(experiment.blocks, workload, metric, arms, by_seat))
    return with_bias(estimate(sample), experiment.design.bias)


def _ratios(
    blocks: Sequence[Block], workload: str, metric: str, arms: tuple[str, str], by_seat: SeatEffects | None
) -> list[list[float]]:
    """Return the log-ratios of a variant to its baseline by round, without seat effects."""
    series = log_ratios(blocks, workload, metric, *arms)
    if by_seat is not None and series:
        series = by_seat.removed(series, *arms)
    return [of_round for _, of_round in sorted(series.items())]


def _verdict(
    blocks: Sequence[Block],
    workload: str,
    metric: Metric,
    arms: tuple[str, str],
    design: Design,
    by_seat: SeatEffects | None,
) -> Verdict:
    """Return one verdict; without a decision if either arm missed its background rate."""
    variant, baseline = arms
    missed = {name: missed_rate(blocks, workload, name) for name in arms}
    reasons = [
        f"{name} missed the background rate in {how.passes} of {how.of_passes} "
        f"{'pass' if how.of_passes == 1 else 'passes'}: {numbers.share(how.lowest, 0)} of it at worst"
        for name, how in missed.items()
        if how is not None
    ]
    verdict = decide(
        [] if reasons else _ratios(blocks, workload, metric.name, arms, by_seat),
        workload=workload,
        metric=metric,
        variant=variant,
        baseline=baseline,
        level=design.level,
        equivalence_margin=design.equivalence_margin,
        power=design.power,
        stopping=design.stopping,
        bias=design.bias,
        void_blocks=sum(1 for block in blocks if block.workload == workload and block.void_for(*arms)),
    )
    if not reasons:
        return verdict
    return replace(
        verdict, reason=f"{'; '.join(reasons)} ({numbers.share(REQUIRED_BACKGROUND_SHARE)} is required)"
    )
