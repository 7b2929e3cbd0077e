"""Latency histograms that merge exactly: 3 significant digits.

The buckets are those of an HdrHistogram.

Up to 2047 each value has its bucket; from there on every doubling has 1024 of them, so that a bucket is at
most 1/1024 of its values wide. Its middle is at most 1/2048 off, which is the relative error of all that is
computed here. Buckets are numbered as in Gil Tene's HdrHistogram (lowest discernible value 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HALF = 1024
"""Buckets of each doubling: the smallest power of two that has 3 significant digits."""
_EXACT_BITS = 11  # values below 2 ** 11 have a bucket of their own
_TAIL_ONE_IN = 20  # the slowest 5 %, as in tail.py


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many values each bucket has.

    Shapes: indexes, counts (buckets,), int64; indexes ascend, counts are above 0.
    """

    indexes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Histogram:
        """Count values; none is below 0.

        Shapes: values (n,).
        """
        _, exponents = np.frexp(np.maximum(values, 2 * HALF - 1).astype(np.float64))
        doublings = exponents.astype(np.int64) - _EXACT_BITS
        return cls(*np.unique(doublings * HALF + (values >> doublings), return_counts=True))

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """Return the histogram of all their values."""
        parts = list(histograms)
        nothing = np.empty(0, dtype=np.int64)
        indexes, where = np.unique(
            np.concatenate([nothing, *(part.indexes for part in parts)]), return_inverse=True
        )
        counts = np.zeros(indexes.size, dtype=np.int64)
        np.add.at(counts, where, np.concatenate([nothing, *(part.counts for part in parts)]))
        return cls(indexes, counts)

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def lowest(self) -> NDArray[np.int64]:
        """The smallest value of each bucket. Shapes: (buckets,)."""
        return (self.indexes - self._doublings * HALF) << self._doublings

    @property
    def middles(self) -> NDArray[np.float64]:
        """The mean of each bucket's whole numbers. Shapes: (buckets,)."""
        return self.lowest + ((1 << self._doublings) - 1) / 2

    @property
    def _doublings(self) -> NDArray[np.int64]:
        return np.maximum(self.indexes // HALF - 1, 0)

    def quantile(self, share: float) -> float:
        """Return the value below which this share lies, between two values by straight line; one is needed.

        It is numpy's "linear" quantile (Hyndman and Fan's type 7), which blocks' percentiles are.
        """
        position = share * (self.count - 1)
        ranks = np.array([np.floor(position), np.ceil(position)])
        low, high = self.middles[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return float(low + (high - low) * (position - ranks[0]))

    def tail_mean(self) -> float:
        """Return the mean of the slowest 5 %, as ``tail.tail_mean`` of the values; one is needed."""
        size = self.count / _TAIL_ONE_IN
        slower = np.cumsum(self.counts[::-1])[::-1] - self.counts
        taken = np.clip(size - slower, 0, self.counts)
        return float((taken * self.middles).sum() / size)
