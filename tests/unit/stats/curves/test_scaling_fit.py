"""Many curves fitted at once, against SciPy's bounded least squares one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from pgdyno.stats.curves.scaling_fit import fit_all
from pgdyno.stats.sample import FloatArray

LEVELS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
BOTH = np.stack([LEVELS - 1, LEVELS * (LEVELS - 1)])


def squares(parameters: FloatArray, target: FloatArray, weight: FloatArray, slowing: FloatArray) -> float:
    values = target + np.log(1 + parameters @ slowing)
    return float(np.sum(weight * (values - np.average(values, weights=weight)) ** 2))


def by_scipy(target: FloatArray, weight: FloatArray, slowing: FloatArray) -> float:
    """Return the least squares that SciPy finds, from several starts."""
    starts = [(0.1, 1e-3), (0.5, 0.1), (1e-3, 1e-5), (0.9, 1e-6)]
    return min(
        optimize.minimize(
            squares,
            start[: len(slowing)],
            (target, weight, slowing),
            bounds=[(0.0, 1.0)] * len(slowing),
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-12},
        ).fun
        for start in starts
    )


@pytest.mark.parametrize("slowing", [BOTH[:1], BOTH], ids=["one parameter", "two"])
def test_no_worse_than_scipys_least_squares_whatever_the_noise(slowing: FloatArray) -> None:
    random = np.random.default_rng(7)
    truth = np.stack([random.uniform(0, 0.6, 60), random.choice([0.0, 1e-4, 0.01, 0.3], 60)], axis=1)
    targets = -np.log(1 + truth @ BOTH) + random.normal(0, 0.1, (60, len(LEVELS)))
    weights = random.integers(0, 5, targets.shape).astype(np.float64)
    weights[:, :3] += 1
    found, left = fit_all(targets, weights, slowing, np.array([0.1, 1e-3])[: len(slowing)])
    assert np.all((found >= 0) & (found <= 1))
    for parameters, rest, target, weight in zip(found, left, targets, weights, strict=True):
        assert rest == pytest.approx(squares(parameters, target, weight, slowing), abs=1e-12)
        assert rest <= by_scipy(target, weight, slowing) + 1e-8


def test_what_follows_the_law_exactly_is_found_exactly() -> None:
    target = -np.log(1 + np.array([0.04, 0.002]) @ BOTH)
    found, left = fit_all(target[None], np.ones((1, len(LEVELS))), BOTH, np.array([0.1, 1e-3]))
    assert found[0] == pytest.approx([0.04, 0.002], rel=1e-6)
    assert left[0] < 1e-15
