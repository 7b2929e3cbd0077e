"""Rates by level: efficiency, and levels that were hardly measured."""

from __future__ import annotations

import math

import pytest
from tests.unit.stats.curves.test_knee import Blocks

from pgdyno.stats.curves.curve import Curve
from pgdyno.stats.curves.scaling_law import observe


def test_efficiency_is_the_rate_of_each_against_the_lowest_level() -> None:
    """Twice the rate with four instead of one: half as efficient."""
    blocks = [{1: 100.0 * k, 4: 200.0 * k} for k in (1.0, 1.1, 0.9, 1.05)]
    one, four = observe(blocks).levels
    assert one.efficiency is not None
    assert four.efficiency is not None
    assert one.efficiency.point == pytest.approx(1.0)
    assert four.efficiency.point == pytest.approx(0.5)
    assert one.ratio_to_best.point == pytest.approx(0.5)
    assert four.blocks == 4


def test_levels_that_are_missing_in_a_slow_block_are_not_favoured() -> None:
    """Level 4 was measured in fast blocks alone, where it was 10 % better than level 2."""
    blocks: Blocks = [{1: 50.0, 2: 100.0}] * 3 + [{1: 100.0, 2: 200.0, 4: 220.0}] * 3
    curve = Curve.of(blocks)
    assert math.exp(curve.means[2] - curve.means[1]) == pytest.approx(1.1)
    assert curve.counts[2, 1] == 3


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf])
def test_a_rate_that_is_none_is_an_error(rate: float) -> None:
    with pytest.raises(ValueError, match="not a positive number"):
        Curve.of([{1: 1.0, 2: rate}])


def test_one_level_is_no_curve() -> None:
    with pytest.raises(ValueError, match="at least two levels"):
        Curve.of([{1: 1.0}])


def test_levels_that_share_no_block_are_compared_by_what_both_share_blocks_with() -> None:
    """Levels 1 and 4 are never measured together, but each is with 2, in blocks of different speed."""
    early: Blocks = [{1: 10.0 * slowed, 2: 20.0 * slowed} for slowed in (1.0, 0.9, 0.8)]
    late: Blocks = [{2: 20.0 * slowed, 4: 30.0 * slowed} for slowed in (0.5, 0.6, 0.7)]
    lowest = observe([*early, *late]).levels[0]
    assert lowest.ratio_to_best.point == pytest.approx(1 / 3)
    assert lowest.ratio_to_best.high == math.inf
