"""Remove seat effects: for four or more arms that change seats from round to round. Pure.

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
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pgdyno.measure.design.schedule import seats
from pgdyno.model.experiments.experiment import Block, Design, DesignKind, Stopping
from pgdyno.stats.sample import FloatArray

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
