"""The data of every analysis: log-ratios of blocks, nested in rounds.

    symbol  meaning                                                          shape     unit
    y       ln(variant / baseline) of a block; for separately measured       (…, N)    1
            servers, ln of the metric
    n_r     valid blocks in round r                                          (R,)      blocks
    R, N    rounds (all servers newly started) and blocks, N = Σ n_r        ()        rounds, blocks
    m_r     mean of the blocks of round r                                    (…, R)    1

Leading axes (…) are experiments with the same layout: simulations analyse thousands at once with the same
functions that analyse one. Blocks of a round are adjacent and in chronological order.
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
