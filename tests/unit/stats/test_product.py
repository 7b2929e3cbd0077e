"""Products of ratios: a step measured finely, with log-ratios FINE, and one measured coarsely.

By hand: FINE has mean 0.11 and variance 0.001/4 of its rounds, so that s² = 0.00025/5 = 0.00005; COARSE has
mean 0.05, variance 0.26/4, s² = 0.065/5 = 0.013. Their sum is what Welch's test makes of FINE and -COARSE;
its figures are from scipy 1.17: ttest_ind(FINE, [-y for y in COARSE], equal_var=False).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgdyno.stats import nested
from pgdyno.stats.inference import infer_product
from pgdyno.stats.product import product_estimate
from pgdyno.stats.sample import Sample

FINE = [[0.10], [0.12], [0.11], [0.09], [0.13]]
COARSE = [[-0.30], [0.20], [0.10], [-0.10], [0.35]]


def test_log_ratios_and_variances_add() -> None:
    estimated = product_estimate([nested.estimate(Sample.of(step)) for step in (FINE, COARSE)])
    assert float(estimated.mean) == pytest.approx(0.16)
    assert float(estimated.standard_error) == pytest.approx(math.sqrt(0.01305))
    assert float(estimated.df) == pytest.approx(0.01305**2 / ((0.00005**2 + 0.013**2) / 4))
    assert estimated.rounds == 5


def test_the_interval_is_that_of_welch() -> None:
    found = infer_product([Sample.of(FINE), Sample.of(COARSE)], level=0.95, margin=0.02)
    assert float(found.low) == pytest.approx(-0.1562190750332)
    assert float(found.high) == pytest.approx(0.4762190750332)
    assert float(found.p_value) == pytest.approx(0.23341885725261)


def test_fine_steps_are_shown_together() -> None:
    """Twice FINE: mean 0.22, s = √0.0001 = 0.01, ν = 8, t(0.975, 8) = 2.306004 from the tables."""
    found = infer_product([Sample.of(FINE), Sample.of(FINE)], level=0.95, margin=0.02)
    assert float(found.low) == pytest.approx(0.22 - 0.02306004, abs=1e-8)
    assert float(found.high) == pytest.approx(0.22 + 0.02306004, abs=1e-8)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """10 000 chains of a fine, a coarse and a fine step, of 5 rounds each, that change nothing in all."""
    random = np.random.default_rng(20261122)
    counts = np.ones(5, dtype=np.int64)
    chains = [Sample(mean + noise * random.standard_normal((10_000, 5)), counts)
              for mean, noise in ((0.1, 0.01), (-0.3, 0.1), (0.2, 0.01))]  # fmt: skip
    inference = infer_product(chains, level=0.95, margin=0.02)
    covered = float(np.mean((inference.low <= 0) & (inference.high >= 0)))
    assert 0.945 <= covered <= 0.985  # the widening of independent rounds by chance is on the safe side
