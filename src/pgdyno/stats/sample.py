"""The data of every analysis: log-ratios of blocks, nested in rounds.

    symbol  meaning                                                          shape     unit
    y       ln(variant / baseline) of a block; for separately measured       (…, N)    1
            servers, ln of the metric
    n_r     valid blocks in round r                                          (R,)      blocks
    R, N    rounds (all servers newly started) and blocks, N = Σ n_r        ()        rounds, blocks
    m_r     mean of the blocks of round r                                    (…, R)    1

Leading axes (…) are experiments with the same layout: simulations analyse thousands at once with the same
functions that analyse one. Blocks of a round are adjacent and in chronological order.

Autocorrelation between rounds, and the resulting widening of the interval.

    symbol  meaning                                                          shape     unit
    R       length of the series                                             ()        rounds
    r₁      lag-1 autocorrelation of the round means                         (…)       1
    ρ       the same, negative values replaced by 0                          (…)       1
    f       variance of the mean of an AR(1) series / variance if white      (…)       1

Between rounds, a positive autocorrelation widens the interval by √f; a negative one is ignored and never
narrows the interval. Correlated blocks within a round need no separate widening: the interval is based on the
spread of round means, which includes the common part of their blocks.

r₁ is not corrected for bias. With few rounds it is biased downwards by about (1 + 4ρ)/R. A correction would
make the interval of independent rounds needlessly wide (a seventh of their power, by simulation) and would
hardly improve coverage for dependent rounds, because few rounds do not reveal the dependence. The remaining
error is in docs/results/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool]
IntArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Log-ratios of one experiment, or of many with the same layout. Shapes: see the module."""

    values: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, log_ratios: Sequence[Sequence[float]]) -> Sample:
        """Return the sample of one experiment, by round; rounds without blocks are left out.

        Raises: ValueError for a log-ratio that is not finite.
        """
        rounds = [list(blocks) for blocks in log_ratios if len(blocks)]
        values = [value for blocks in rounds for value in blocks]
        for value in values:
            if not math.isfinite(value):
                raise ValueError(f"a log-ratio is not finite: {value}")
        counts = [len(blocks) for blocks in rounds]
        return cls(np.array(values, dtype=np.float64), np.array(counts, dtype=np.int64))

    @property
    def rounds(self) -> int:
        """R."""
        return len(self.counts)

    @property
    def blocks(self) -> int:
        """N."""
        return int(self.counts.sum())

    @property
    def round_means(self) -> FloatArray:
        """m_r. Shapes: (…, R)."""
        starts = np.cumsum(self.counts) - self.counts
        sums: FloatArray = np.add.reduceat(self.values, starts, axis=-1)
        return sums / self.counts

    @property
    def deviations_within(self) -> FloatArray:
        """Every block's deviation from its round's mean. Shapes: (…, N)."""
        return self.values - np.repeat(self.round_means, self.counts, axis=-1)

    @property
    def inverse(self) -> Sample:
        """The sample of baseline / variant."""
        return Sample(-self.values, self.counts)

    def first_rounds(self, rounds: int) -> Sample:
        """Return the sample of the first ``rounds`` rounds."""
        counts = self.counts[:rounds]
        return Sample(self.values[..., : int(counts.sum())], counts)


LARGEST = 0.95  # of ρ: above it the series is indistinguishable from a random walk
POWER_ALLOWANCE = (
    1.05  # by simulation: factor on the detectable effect, because r₁ of independent rounds is noisy
)


def lag_one(series: FloatArray) -> FloatArray:
    """Return r₁ along the last axis; 0 for a constant series.

    Source: Box, Jenkins, Reinsel, Ljung (2015), Time Series Analysis, 5th ed., §2.1.
    """
    deviations = series - series.mean(axis=-1, keepdims=True)
    products = (deviations[..., 1:] * deviations[..., :-1]).sum(axis=-1)
    squares = (deviations**2).sum(axis=-1)
    return np.asarray(np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0))


def autocorrelation_between_rounds(round_means: FloatArray) -> FloatArray:
    """Return the ρ that widens the interval. Shapes: (…, R) → (…)."""
    return np.clip(lag_one(round_means), 0.0, LARGEST)


def variance_inflation(rho: FloatArray, rounds: int) -> FloatArray:
    """Return f ≥ 1: the variance of the mean, relative to that of the same number of independent values.

    f = 1 + 2 Σ (1 - k/R) ρ^k over the lags k = 1 … R-1. Shapes: (…) → (…).
    Source: Box, Jenkins, Reinsel, Ljung (2015), §2.1, variance of a sample mean.
    """
    lags = np.arange(1, rounds)
    return np.asarray(1 + 2 * ((1 - lags / rounds) * np.asarray(rho)[..., None] ** lags).sum(axis=-1))


def autocorrelation_within_rounds(sample: Sample) -> FloatArray | None:
    """Return the lag-1 autocorrelation of blocks pooled over rounds; None without a round of 3 blocks.

    Two blocks always deviate from their mean by opposite amounts, which is not informative. The bias of
    -1/n_r is removed.
    """
    if sample.counts.max(initial=0) < 3:
        return None
    deviations = sample.deviations_within
    is_adjacent = np.diff(np.repeat(np.arange(sample.rounds), sample.counts)) == 0
    products = (deviations[..., 1:] * deviations[..., :-1])[..., is_adjacent].sum(axis=-1)
    squares = (deviations**2).sum(axis=-1)
    # Of white noise, E Σ products = -σ² Σ (n-1)/n and E Σ squares = σ² Σ (n-1).
    bias = ((sample.counts - 1) / sample.counts).sum() / (sample.counts - 1).sum()
    lag_one_within = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    return np.asarray(lag_one_within + bias)
