"""Laws of scaling, recovered from curves that were made by them, and from a published one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from pgdyno.stats.curves.curve import Curve
from pgdyno.stats.curves.scaling_law import AMDAHL, USL, fit, fit_all, fit_laws, lack_of_fit, simplest
from pgdyno.stats.sample import FloatArray

RAYTRACER = {
    1: 20, 4: 78, 8: 130, 12: 170, 16: 190, 20: 200, 24: 210, 28: 230, 32: 260, 48: 280, 64: 310,
}  # fmt: skip
"""Gunther (2007), Guerrilla Capacity Planning, table 5.1: an SGI Origin 2000, rays by processors."""


def curve(law: dict[int, float], *, blocks: int = 8, noise: float = 0.01, seed: int = 1) -> Curve:
    random = np.random.default_rng(seed)
    return Curve.of(
        [
            {n: rate * slowed * math.exp(random.normal(0, noise)) for n, rate in law.items()}
            for slowed in random.uniform(0.8, 1.0, size=blocks)
        ]
    )


def amdahl(serial: float, levels: tuple[int, ...]) -> dict[int, float]:
    return {n: 10 / (serial + (1 - serial) / n) for n in levels}


def test_amdahls_law_is_recovered_and_suffices() -> None:
    levels = (1, 2, 4, 8, 16, 32)
    simple, universal = fit_laws(curve(amdahl(0.05, levels)))
    assert simple.name == AMDAHL
    assert simple.contention.low < 0.05 < simple.contention.high
    assert simple.contention.point == pytest.approx(0.05, rel=0.05)
    assert simple.peak is None
    assert simple.crosstalk is None
    assert simplest((simple, universal)) == AMDAHL


def test_the_universal_law_is_recovered_where_amdahls_does_not_do() -> None:
    """σ = 0.04, κ = 0.002: highest at √(0.96/0.002) = 21.9."""
    law = {n: 10 * n / (1 + 0.04 * (n - 1) + 0.002 * n * (n - 1)) for n in (1, 2, 4, 8, 16, 24, 32)}
    simple, universal = fit_laws(curve(law))
    assert universal.name == USL
    assert universal.crosstalk is not None
    assert universal.contention.low < 0.04 < universal.contention.high
    assert universal.crosstalk.low < 0.002 < universal.crosstalk.high
    assert universal.peak == pytest.approx(21.9, rel=0.05)
    assert simple.p_value is not None
    assert simple.p_value < 1e-6
    assert simplest((simple, universal)) == USL


def test_workers_beside_a_leader_are_one_more() -> None:
    """By k workers, k + 1 processes; without the offset level 0 would have no rate at all."""
    law = {n - 1: rate for n, rate in amdahl(0.1, (1, 2, 3, 5, 9)).items()}
    (simple, *_) = fit_laws(curve(law), offset=1)
    assert simple.contention.point == pytest.approx(0.1, rel=0.1)
    assert fit_laws(curve(law)) == ()


def test_a_peak_is_a_level_that_lies_within_the_measured_ones() -> None:
    """σ = 0, κ = 0.01: ten processes are the best, which are nine workers beside a leader."""
    law = {n: 10 * n / (1 + 0.01 * n * (n - 1)) for n in range(1, 21)}

    def peak(numbers: range) -> float | None:
        _, universal = fit_laws(curve({n - 1: law[n] for n in numbers}, noise=1e-4), offset=1)
        return universal.peak

    assert peak(range(1, 21)) == pytest.approx(9, abs=0.05)
    assert peak(range(1, 9)) is None  # it would be extrapolated
    assert peak(range(12, 21)) is None


def test_levels_of_few_rounds_do_not_narrow_the_interval() -> None:
    """Six levels in one round each: nearly all resampled rounds lack one of them.

    By hand: ∂ ln X/∂σ = −(N−1)/(1 + σ(N−1)), so that levels 1 to 4 in six rounds with 2 % of noise give σ a
    standard error of 0.0042; the other levels, once each, do not bring that down to a quarter of it.
    """
    law, random = amdahl(0.05, tuple(range(1, 11))), np.random.default_rng(3)
    often = (1, 2, 3, 4)
    blocks = [
        {n: law[n] * math.exp(random.normal(0, 0.02)) for n in (*often, 5 + number)} for number in range(6)
    ]
    simple, _ = fit_laws(Curve.of(blocks))
    assert simple.contention.low < 0.05 < simple.contention.high
    assert simple.contention.high - simple.contention.low > 0.004


def test_a_published_benchmark_has_the_published_contention() -> None:
    """σ = 0.0500 by R's package usl 3.0, usl(throughput ~ processors, raytracer): no fit of logarithms."""
    _, universal = fit_laws(curve({n: float(rate) for n, rate in RAYTRACER.items()}, noise=1e-4))
    assert universal.contention.point == pytest.approx(0.05, abs=0.01)


def test_no_law_is_claimed_for_what_follows_none() -> None:
    steps = {1: 10.0, 2: 20.0, 4: 20.0, 8: 80.0, 16: 80.0}
    assert simplest(fit_laws(curve(steps))) is None


def test_the_test_of_a_law_is_right_about_as_often_as_it_says() -> None:
    """Of 400 curves that do follow the law, 20 are expected to be denied; 33 or more have p < 0.004."""
    levels = (1, 2, 4, 8, 16)
    numbers, denied = np.array(levels, dtype=np.float64), 0
    curves = [curve(amdahl(0.1, levels), noise=0.03, seed=seed) for seed in range(400)]
    for noisy, fitted in zip(curves, fit(curves, numbers, AMDAHL), strict=True):
        p_value = lack_of_fit(noisy, fitted, AMDAHL)
        assert p_value is not None
        denied += p_value <= 0.05
    assert 8 <= denied <= 32


def test_a_term_that_is_not_there_is_nought() -> None:
    """Linear: ten times the rate with ten. Without noise the fit stops beside its bound."""
    _, universal = fit_laws(curve({n: 10.0 * n for n in (1, 2, 4, 10)}, noise=1e-9))
    assert universal.contention.point == 0.0
    assert universal.crosstalk is not None
    assert universal.crosstalk.point == 0.0
    assert universal.peak is None


def test_with_as_many_levels_as_parameters_nothing_is_left_to_test() -> None:
    simple, universal = fit_laws(curve(amdahl(0.1, (1, 2, 4))))
    assert simple.p_value is not None
    assert universal.p_value is None
    assert simplest((universal,)) is None  # what cannot be contradicted is not said to fit
    assert len(fit_laws(curve(amdahl(0.1, (1, 2))))) == 1


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
