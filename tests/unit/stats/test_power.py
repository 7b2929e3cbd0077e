"""Values from R 4.2.2, sqrt(n) times delta.

power.t.test(n = …, sd = 1, power = …, sig.level = …, type = "one.sample", strict = TRUE, tol = 1e-12).
"""

from __future__ import annotations

import math

import pytest
from scipy import special

from pgdyno.model.experiments.verdict import VarianceComponents
from pgdyno.stats.power import detectable_effect, detectable_noncentrality, minimum_detectable_effect
from pgdyno.stats.sample import POWER_ALLOWANCE


@pytest.mark.parametrize(
    ("n", "level", "power", "noncentrality"),
    [
        (3, 0.95, 0.8, 5.6534892661923),
        (6, 0.95, 0.8, 3.5139027291703),
        (10, 0.95, 0.8, 3.1496328864496),
        (40, 0.95, 0.8, 2.8729731446754),
        (8, 0.99, 0.9, 5.1299379647223),
    ],
)
def test_the_detectable_noncentrality_is_that_of_power_t_test(
    n: int, level: float, power: float, noncentrality: float
) -> None:
    critical = float(special.stdtrit(n - 1, (1 + level) / 2))
    assert detectable_noncentrality(n - 1, critical, power) == pytest.approx(noncentrality, rel=1e-6)


def test_a_plan_combines_both_variance_components() -> None:
    """6 rounds of 2 blocks, 1.2 % and 1 %: √((0.012² + 0.01²/2)/6) = 0.00568624, times R's 3.51390."""
    mde = minimum_detectable_effect(VarianceComponents(0.012, 0.010), rounds=6, blocks_per_round=2)
    assert mde == pytest.approx(math.expm1(0.005686240703 * POWER_ALLOWANCE * 3.5139027291703), rel=1e-6)


def test_more_rounds_find_smaller_effects_than_more_blocks() -> None:
    components = VarianceComponents(0.012, 0.010)
    by_rounds = minimum_detectable_effect(components, 20, 1)
    by_blocks = minimum_detectable_effect(components, 5, 4)
    assert by_rounds < 0.6 * by_blocks


def test_without_a_finite_critical_value_nothing_is_detectable() -> None:
    assert math.isinf(detectable_effect(0.01, 3, math.inf, 0.8))


def test_one_round_is_no_plan() -> None:
    with pytest.raises(ValueError, match="no plan: 1 rounds of 2 blocks"):
        minimum_detectable_effect(VarianceComponents(0.01, 0.01), 1, 2)
