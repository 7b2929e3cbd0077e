"""Values from R 4.2.2: the mixture over σ and δ integrated numerically, without the closed form under test.

ev <- function(x, g) num/den, where over u = log σ
  num integrates ∫ Π dnorm(x, exp(u) d, exp(u)) dnorm(d, 0, sqrt(g)) dd, and den Π dnorm(x, 0, exp(u)).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgdyno.stats import anytime, nested
from pgdyno.stats.sample import Sample

CHANGED = [[0.031], [0.018], [0.044], [0.027], [0.012], [0.038]]
UNCHANGED = [[0.003], [-0.006], [0.008], [-0.002], [0.005], [-0.007], [0.004], [0.001]]


@pytest.mark.parametrize(
    ("log_ratios", "log_e_value"), [(CHANGED, 3.73912007792), (UNCHANGED, -1.52382227778)]
)
def test_the_e_value_is_that_of_numerical_integration(
    log_ratios: list[list[float]], log_e_value: float
) -> None:
    """log(ev(x, 3))."""
    estimated = nested.estimate(Sample.of(log_ratios))
    computed = anytime.log_e_value(estimated.t_against(0.0), estimated.rounds)
    assert float(computed) == pytest.approx(log_e_value, rel=1e-6)
    assert float(anytime.p_value(estimated)) == pytest.approx(min(1.0, math.exp(-log_e_value)), rel=1e-6)


def test_the_interval_ends_where_the_integrated_e_value_reaches_20() -> None:
    """uniroot(function(mu) ev(x - mu, 3) - 20, …): 0.00512711277392 and 0.0515395538927."""
    estimated = nested.estimate(Sample.of(CHANGED))
    half_width = float(anytime.critical_t(estimated, 0.95) * estimated.standard_error)
    assert float(estimated.mean) - half_width == pytest.approx(0.00512711277392, rel=1e-5)
    assert float(estimated.mean) + half_width == pytest.approx(0.0515395538927, rel=1e-5)


@pytest.mark.parametrize("rounds", [2, 3])
def test_after_two_or_three_rounds_nothing_can_be_excluded(rounds: int) -> None:
    estimated = nested.estimate(Sample.of([[0.1 + index, 0.2 + index] for index in range(rounds)]))
    assert math.isinf(float(anytime.critical_t(estimated, 0.95)))
    assert float(anytime.p_value(estimated, null=-1e9)) > 0.05


@pytest.mark.parametrize("rounds", [5, 10, 20, 40])
def test_looking_costs_width(rounds: int) -> None:
    estimated = nested.estimate(
        Sample(np.random.default_rng(rounds).normal(size=rounds), np.ones(rounds, int))
    )
    assert float(anytime.critical_t(estimated, 0.95)) > 1.5 * float(nested.critical_t(estimated, 0.95))


def test_a_one_sided_p_value_never_speaks_for_the_other_side() -> None:
    estimated = nested.estimate(Sample.of(CHANGED))
    assert float(anytime.one_sided_p(estimated, null=0.5)) == 1.0
    assert float(anytime.one_sided_p(estimated, null=0.0)) == float(anytime.p_value(estimated))
