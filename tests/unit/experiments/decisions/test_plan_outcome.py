"""Estimates of a plan's outcome, and their bounds."""

from __future__ import annotations

import math

import pytest

from pgdyno.experiments.decisions.plan_outcome import Estimate, estimate


def test_bounds_are_those_of_students_t() -> None:
    # t(13) has 5 % above 1.770933 and 2.5 % above 2.160369 (tables of Student's t).
    found = Estimate(0.1, 0.02, 13.0, 14)
    assert found.lower() == pytest.approx(math.exp(0.1 - 0.02 * 1.770933), rel=1e-6)
    assert found.upper(0.025) == pytest.approx(math.exp(0.1 + 0.02 * 2.160369), rel=1e-6)
    assert found.p_at_most(math.exp(0.1)) == pytest.approx(0.5)
    assert found.p_at_most(math.exp(0.1 - 0.02 * 2.160369)) == pytest.approx(0.025, rel=1e-5)


def test_drift_gives_the_bounds_of_the_worse_half() -> None:
    level = [[0.30], [0.31], [0.29], [0.305], [0.30], [0.10], [0.11], [0.09], [0.105], [0.10]]
    found = estimate(level)
    assert found is not None
    assert found.ratio == pytest.approx(math.exp(0.101))
    longer = estimate(level, is_gain=False)
    assert longer is not None
    assert longer.ratio == pytest.approx(math.exp(0.301))
    steady = estimate([[0.30], [0.31], [0.29], [0.30], [0.31], [0.30], [0.29], [0.305], [0.295], [0.30]])
    assert steady is not None
    assert steady.ratio == pytest.approx(math.exp(0.30))


def test_four_rounds_give_no_bound() -> None:
    assert estimate([[0.3], [0.31], [0.29], [0.3]]) is None
