"""Values from R 4.2.2 with boot 1.3-28.1 and from scipy 1.17.1, calls named at each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgdyno.stats.bootstrap import acceleration, bca_interval

EVEN = np.array([0.031, 0.018, -0.004, 0.027, 0.012, 0.038, -0.009, 0.021, 0.016, 0.007])
SKEWED = np.array([0.002, 0.004, 0.003, 0.001, 0.005, 0.040, 0.003, 0.002, 0.006, 0.021])


def test_acceleration_is_that_of_the_jackknife_influence_values() -> None:
    """R: l <- empinf(data = x, statistic = …mean…, type = "jack"); sum(l^3)/(6*sum(l^2)^1.5)."""
    assert acceleration(EVEN) == pytest.approx(-0.0135220174122)
    assert acceleration(SKEWED) == pytest.approx(0.0996536153482)


def test_the_interval_is_that_of_boot_ci() -> None:
    """R: boot.ci(boot(x, function(d, i) mean(d[i]), R = 400000), type = "bca"): 0.0063 0.0238."""
    interval = bca_interval(EVEN, 0.95)
    assert math.log(interval.low) == pytest.approx(0.0063, abs=3e-4)
    assert math.log(interval.high) == pytest.approx(0.0238, abs=3e-4)


def test_the_interval_of_skewed_rounds_is_that_of_scipy() -> None:
    """stats.bootstrap((x,), np.mean, n_resamples=200000, method="BCa", rng=1): 0.0035, 0.0210.

    R's boot.ci takes the acceleration from a regression by default, and differs for skewed data.
    """
    interval = bca_interval(SKEWED, 0.95)
    assert math.log(interval.low) == pytest.approx(0.0035, abs=3e-4)
    assert math.log(interval.high) == pytest.approx(0.0210, abs=3e-4)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert bca_interval(SKEWED, 0.95, seed=7) == bca_interval(SKEWED, 0.95, seed=7)
    assert bca_interval(SKEWED, 0.95, seed=7) != bca_interval(SKEWED, 0.95, seed=8)
