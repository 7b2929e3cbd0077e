"""One effect on several machines: published examples, arithmetic by hand, and fleets with a known truth.

BCG: 13 trials of a vaccine (Colditz et al. (1994), JAMA 271, 698-702) as 2 × 2 tables of ill and healthy,
vaccinated and not. Figures of log risk ratios are those of the R package metafor, ``rma(measure="RR")`` with
``method="HE"``, ``"PM"`` and ``test="knha"``; the interval of log odds ratios stands at
metafor-project.org/doku.php/analyses:vanhouwelingen2002.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.fleets import (
    BETWEEN,
    OCCASIONS,
    PROMISED,
    PROMISED_OF_OCCASIONS,
    Kind,
    hartung_knapp,
    held,
    held_by_textbook,
    held_of_occasions,
    paule_mandel,
    q_profile,
)

from pgdyno.stats.fleet import (
    EffectsApart,
    across,
    between_interval,
    between_variance,
    predicted_reach,
    repeated,
)
from pgdyno.stats.nested import MeanEstimate, critical_t

BCG = np.array(
    [
        *([4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619]),
        *([33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619], [505, 87886, 499, 87892]),
        *([29, 7470, 45, 7232], [17, 1699, 65, 1600], [186, 50448, 141, 27197], [5, 2493, 3, 2338]),
        [27, 16886, 29, 17825],
    ],
    dtype=float,
)
KNOWN = 1e12  # degrees of freedom of a variance that is known
FLEETS = 1500
TOLERANCE = 3 * math.sqrt(0.05 * 0.95 / FLEETS)  # three standard errors of a share near 5 %


def risk_ratios() -> EffectsApart:
    ill, healthy, control_ill, control_healthy = BCG.T
    of, of_control = ill + healthy, control_ill + control_healthy
    variances = 1 / ill - 1 / of + 1 / control_ill - 1 / of_control
    return EffectsApart(
        np.log(ill / of / (control_ill / of_control)), variances, np.full_like(variances, KNOWN)
    )


def odds_ratios() -> EffectsApart:
    ill, healthy, control_ill, control_healthy = BCG.T
    variances = (1 / BCG).sum(axis=1)
    means = np.log(ill * control_healthy / (healthy * control_ill))
    return EffectsApart(means, variances, np.full_like(variances, KNOWN))


def estimate(mean: float, standard_error: float, df: float) -> MeanEstimate:
    parts = (np.asarray(one) for one in (mean, standard_error, df, 0.0, 1.0))
    return MeanEstimate(6, *parts)


def test_the_variance_between_trials_is_the_published_one() -> None:
    assert float(between_variance(risk_ratios())) == pytest.approx(0.3286, abs=5e-5)


def test_the_mean_is_that_of_a_t_test_of_the_trials() -> None:
    """By scipy 1.17, ttest_1samp of the log risk ratios has the interval -1.1599126 to -0.3213882."""
    found = across(risk_ratios())
    reach = critical_t(found, 0.95) * found.standard_error
    assert float(found.mean - reach) == pytest.approx(-1.1599126, abs=1e-7)
    assert float(found.mean + reach) == pytest.approx(-0.3213882, abs=1e-7)
    # t(12) = 2.178813; the trials' standard deviation is 0.693805; √(1 + 1/13) = 1.037749.
    assert float(predicted_reach(risk_ratios(), 0.95)) == pytest.approx(1.568736, abs=2e-6)


def test_of_known_equal_variances_the_interval_is_that_of_chi_square() -> None:
    """Means 0, 1, 2, 3, 4 have S² = 2.5; χ²(4) has its quantiles at 0.4844186 and 11.143287."""
    effects = EffectsApart(np.arange(5.0), np.full(5, 0.5), np.full(5, KNOWN))
    low, high = between_interval(effects, 0.95)
    assert float(low) == pytest.approx(4 * 2.5 / 11.143287 - 0.5, abs=1e-6)
    assert float(high) == pytest.approx(4 * 2.5 / 0.4844186 - 0.5, rel=1e-6)
    assert float(between_variance(effects)) == 2.0


def test_where_noise_explains_the_spread_machines_are_not_known_to_differ() -> None:
    """S² is 0.01 and the mean of the variances 1: nothing is left, and noise alone makes the intervals."""
    effects = EffectsApart(np.array([0.0, 0.1, 0.2]), np.full(3, 1.0), np.full(3, 5.0))
    assert float(between_variance(effects)) == 0
    assert tuple(map(float, between_interval(effects, 0.95))) == (0, 0)
    assert float(across(effects).standard_error) == pytest.approx(math.sqrt(1 / 3))
    assert float(predicted_reach(effects, 0.95)) == pytest.approx(4.302653 * math.sqrt(4 / 3), abs=1e-5)


def test_experiments_on_one_machine_keep_their_degrees_of_freedom() -> None:
    """Variances 0.04 and 0.01: their mean's is 0.05/4; by Satterthwaite 0.05² / (0.04²/4 + 0.01²/5)."""
    agreeing = EffectsApart.of([estimate(0.10, 0.2, 4.0), estimate(0.12, 0.1, 5.0)])
    found = repeated(agreeing)
    assert float(found.mean) == pytest.approx(0.11)
    assert float(found.standard_error) == pytest.approx(math.sqrt(0.05 / 4))
    assert float(found.df) == pytest.approx(0.0025 / (0.0016 / 4 + 0.0001 / 5))


def test_experiments_on_one_machine_that_disagree_widen_its_standard_error() -> None:
    """Means 0 and 1 have a sample variance of 0.5: the standard error of their mean is √(0.5/2).

    Two values have one degree of freedom, whatever is known of each.
    """
    found = repeated(EffectsApart.of([estimate(0.0, 0.2, 4.0), estimate(1.0, 0.1, 5.0)]))
    assert float(found.standard_error) == pytest.approx(0.5)
    assert float(found.df) == 1


@pytest.mark.parametrize("unequal", [0.0, 1.0])
@pytest.mark.parametrize("between", [*BETWEEN, 20.0])
@pytest.mark.parametrize("experiments", OCCASIONS)
def test_intervals_of_one_machine_hold_as_often_as_it_is_said(
    experiments: int, between: float, unequal: float
) -> None:
    found = held_of_occasions(Kind(experiments, between, unequal), FLEETS)
    assert found >= (PROMISED if between == 0 else PROMISED_OF_OCCASIONS) - TOLERANCE


def test_the_textbook_that_it_is_compared_with_gives_the_published_figures() -> None:
    assert float(paule_mandel(risk_ratios())) == pytest.approx(0.3181, abs=5e-5)
    low, high = q_profile(odds_ratios(), 0.95)
    assert float(low) == pytest.approx(0.1302, abs=1e-4)  # uniroot's own tolerance
    assert float(high) == pytest.approx(1.1812, abs=1e-4)
    mean, error = hartung_knapp(risk_ratios(), np.asarray(0.3132))  # τ² by REML
    assert float(mean) == pytest.approx(-0.7145, abs=5e-5)
    assert float(error) == pytest.approx(0.1808, abs=5e-5)


@pytest.mark.parametrize("unequal", [0.0, 1.0])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("machines", [3, 5, 10, 40])
def test_intervals_hold_at_least_as_often_as_they_say(machines: int, between: float, unequal: float) -> None:
    found = held(Kind(machines, between, unequal), FLEETS)
    for share in (found.mean, found.measured, found.true, found.between):
        assert share >= PROMISED - TOLERANCE


@pytest.mark.parametrize("machines", [3, 10])
def test_where_machines_differ_much_intervals_hold_as_often_as_they_say(machines: int) -> None:
    found = held(Kind(machines, 20.0, 0.0), FLEETS)
    for share in (found.mean, found.measured, found.true, found.between):
        assert share == pytest.approx(0.95, abs=TOLERANCE)


def test_the_textbook_does_not_hold_what_it_says_after_six_rounds() -> None:
    """Why decision 48 goes without weights: standard errors of six rounds are too uncertain to be weights."""
    found = held_by_textbook(Kind(40, 0.0, 0.0), FLEETS)
    assert found.mean < PROMISED - TOLERANCE
    assert found.between < 0.7
