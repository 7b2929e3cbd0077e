"""The order of a column's values in the rows of a table, for a given correlation.

A column's sorted values have ranks 0 … n - 1. An ordering maps the position of a row to its rank: it is a
permutation that is computed for any position, without storing it.

Of each hundred rows, some have a rank equal to their position, and the others are permuted randomly. The
share of the former is the correlation between position and rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_CYCLE = 100
_ONE_CYCLE = 10_000  # smaller tables are a single cycle: a hundredth of them would be only a few rows
_GOLDEN = 0.618  # spreads the rows that keep their ranks over a cycle
_ROUNDS = 4  # of a Feistel network: three or more give a pseudo-random permutation (Luby and Rackoff, 1988)


def mixed(values: Integers, seed: int) -> NDArray[np.uint64]:
    """Return pseudo-random 64-bit numbers, equal ones for equal values.

    Source: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    """
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed_: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed_


def fractions(values: Integers, seed: int) -> NDArray[np.float64]:
    """Return pseudo-random numbers in [0, 1), equal ones for equal values."""
    return (mixed(values, seed) >> np.uint64(11)).astype(np.float64) / 2.0**53


def shuffled(values: Integers, size: int, seed: int) -> Integers:
    """Return a pseudo-random permutation of 0 … size - 1, applied to ``values``."""
    if size <= 1:
        return values
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    found = _feistel(values, half, seed)
    outside = np.flatnonzero(found >= size)
    while outside.size:  # it permutes a range of size 4^k: repeat until within ``size``
        found[outside] = _feistel(found[outside], half, seed)
        outside = outside[found[outside] >= size]
    return found


def _feistel(values: Integers, half: int, seed: int) -> Integers:
    mask = np.int64((1 << half) - 1)
    left, right = values >> np.int64(half), values & mask
    for number in range(_ROUNDS):
        mixture = (mixed(right, seed + number) >> np.uint64(64 - half)).astype(np.int64)
        left, right = right, left ^ (mixture & mask)
    return (left << np.int64(half)) | right


@dataclass(frozen=True)
class Ordering:
    """The ranks of a table's rows. ``kept`` is the share of rows with a rank equal to their position.

    If it is negative, ranks count from the end.
    """

    rows: int
    kept: float
    seed: int

    def ranks(self, positions: Integers) -> Integers:
        """Return the ranks at positions; both from 0 to rows - 1."""
        if self.rows <= 1:
            return np.zeros_like(positions)
        cycle = _CYCLE if self.rows >= _ONE_CYCLE else self.rows
        keeping = round(abs(self.kept) * cycle)
        step = _coprime(cycle)
        ranks = positions.copy()
        number, phase = positions // cycle, positions % cycle * step % cycle
        whole = self.rows // cycle
        moving = np.flatnonzero((phase >= keeping) & (number < whole))  # incomplete cycles keep their ranks
        if moving.size:
            width = cycle - keeping
            places = number[moving] * width + phase[moving] - keeping
            moved = shuffled(places, whole * width, self.seed)
            back = (moved % width + keeping) * pow(step, -1, cycle) % cycle if cycle > 1 else moved * 0
            ranks[moving] = moved // width * cycle + back
        return ranks if self.kept >= 0 else self.rows - 1 - ranks


def kept_share(correlation: float, squares: float, cubes: float) -> float:
    """Return the share of rows that must keep their ranks for ANALYZE to compute this correlation.

    ``squares`` and ``cubes`` are sums of powers of the values' frequencies. ANALYZE sorts equal values by
    position: so its correlation for values in random order is the sum of squares, and for values in
    descending order twice the sum of cubes, minus one.
    """
    if squares >= 1:
        return 1.0
    if correlation >= squares:
        return min(1.0, (correlation - squares) / (1 - squares))
    return -min(1.0, (squares - correlation) / (squares + 1 - 2 * cubes))


def _coprime(cycle: int) -> int:
    step = max(1, round(_GOLDEN * cycle))
    while gcd(step, cycle) != 1:
        step += 1
    return step
