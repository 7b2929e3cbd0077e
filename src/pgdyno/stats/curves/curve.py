"""Rates by level of a factor, measured in blocks, compared in pairs.

    symbol  meaning                                                          shape     unit
    y_bl    ln rate of level l in block b; NaN if not measured               (B, L)    1
    d_ij    mean of y_bi − y_bj over the blocks with both                    (L, L)    1
    s_ij    its standard error, from the same differences                    (L, L)    1
    n_ij    the number of these blocks                                       (L, L)    blocks

All levels of a block are measured close in time, in random order: a disturbance of a block cancels in d. Each
pair has a separate standard error, because levels above the number of CPUs are noisier than others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from pgdyno.stats.sample import BoolArray, FloatArray, IntArray

MINIMUM_BLOCKS = 3  # per pair, for a standard error with two degrees of freedom


@dataclass(frozen=True)
class Curve:
    """Rates by level and block. Shapes: levels (L,), ascending; log_rates (B, L)."""

    levels: IntArray
    log_rates: FloatArray

    @classmethod
    def of(cls, blocks: Sequence[Mapping[int, float]]) -> Curve:
        """Return the curve of blocks, given as rates by level; a level may be missing in a block.

        Raises: ValueError for a rate that is not positive, or for fewer than two levels.
        """
        levels = sorted({level for block in blocks for level in block})
        if len(levels) < 2:
            raise ValueError("a curve has at least two levels")
        rates = np.array([[block.get(level, np.nan) for level in levels] for block in blocks])
        if not np.all(np.isnan(rates) | (rates > 0)) or np.any(np.isinf(rates)):
            raise ValueError("a rate is not a positive number")
        return cls(np.array(levels, dtype=np.int64), np.log(rates))

    @property
    def compared(self) -> Curve:
        """The curve reduced to levels with enough blocks for a standard error; all if fewer than two have.

        Otherwise a level with a single lucky block could look like the best.
        """
        is_enough = self.is_measured.sum(axis=0) >= MINIMUM_BLOCKS
        if is_enough.sum() < 2:
            return self
        log_rates = self.log_rates[:, is_enough]
        return Curve(self.levels[is_enough], log_rates[~np.isnan(log_rates).all(axis=1)])

    @property
    def is_measured(self) -> BoolArray:
        """True where a rate was measured. Shapes: (B, L)."""
        return np.asarray(~np.isnan(self.log_rates))

    @cached_property
    def means(self) -> FloatArray:
        """The level effects of an additive model of levels and blocks, robust to missing levels: (L,).

        Levels not connected to others by common blocks, not even indirectly, cannot be compared.
        """
        if self.is_measured.all():
            return np.asarray(self.log_rates.mean(axis=0))
        blocks, levels = self.log_rates.shape
        row, column = np.nonzero(self.is_measured)
        design = np.zeros((len(row), levels + blocks))
        design[np.arange(len(row)), column] = 1
        design[np.arange(len(row)), levels + row] = 1
        effects, *_ = np.linalg.lstsq(design, self.log_rates[row, column])
        return np.asarray(effects[:levels] + effects[levels:].mean())

    @cached_property
    def counts(self) -> IntArray:
        """n_ij. Shapes: (L, L)."""
        measured = self.is_measured.astype(np.int64)
        return np.asarray(measured.T @ measured)

    @cached_property
    def differences(self) -> FloatArray:
        """d_ij, ln of rate i over rate j; from the means for levels without a common block: (L, L)."""
        own = np.nan_to_num(self._pairs).sum(axis=0) / np.maximum(self.counts, 1)
        return np.where(self.counts > 0, own, self.means[:, None] - self.means[None, :])

    @cached_property
    def standard_errors(self) -> FloatArray:
        """s_ij; infinite with too few common blocks. Shapes: (L, L)."""
        squares = np.nan_to_num((self._pairs - self.differences) ** 2).sum(axis=0)
        variances = squares / np.maximum(self.counts - 1, 1) / np.maximum(self.counts, 1)
        return np.where(self.counts >= MINIMUM_BLOCKS, np.sqrt(variances), np.inf)

    def bounds(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds on d_ij, each with error probability ``tail``. Shapes: (L, L) twice."""
        reach = special.stdtrit(np.maximum(self.counts - 1, 1), 1 - tail) * self.standard_errors
        np.fill_diagonal(reach, 0.0)
        return self.differences - reach, self.differences + reach

    def resampled(self, rows: IntArray) -> Curve:
        """Return the curve of these blocks, with repetitions."""
        return Curve(self.levels, self.log_rates[rows])

    @property
    def _pairs(self) -> FloatArray:
        """Return y_bi − y_bj. Shapes: (B, L, L)."""
        return np.asarray(self.log_rates[:, :, None] - self.log_rates[:, None, :])
