"""Noise that hides whatever a search has tried."""

from __future__ import annotations

import math

import pytest

from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.tune.search.race import lost_in_noise


def trial(number: int, *gains: float, state: TrialState = TrialState.CLOSE) -> Trial:
    return Trial(number, {"jit": "off"}, None, tuple(TrialRound(one, one, 0.0) for one in gains), state)


WIDE = (0.30, -0.28, 0.26, -0.24, 0.01)  # by hand: mean 0.01, squares about it 0.2932


def test_what_noise_hides_is_told_with_the_rounds_that_would_show_it() -> None:
    lost = lost_in_noise([trial(1, *WIDE)])
    assert lost is not None
    # The guess of 0.04 counts as three degrees of freedom, the rounds' four: √((3 · 0.0016 + 0.2932) / 7).
    assert lost.noise == pytest.approx(0.2063, rel=1e-3)
    # Half width of 5 rounds: 0.2063 · √(6/25 · (2 ln 20 + ln 6)).
    assert lost.least_gain == pytest.approx(0.2821, rel=1e-3)
    assert lost.wanted == math.log(1.02)  # more than the mean of 0.01
    assert lost.rounds == 852  # (2.8 · 0.20633 / 0.019803)² = 851.1, rounded up


def test_the_largest_mean_is_what_a_proof_would_have_to_show() -> None:
    larger = tuple(one + 0.09 for one in WIDE)
    lost = lost_in_noise([trial(1, *WIDE), trial(2, *larger)])
    assert lost is not None
    assert lost.wanted == pytest.approx(0.10)


@pytest.mark.parametrize("gain", [0.40, -0.40])
def test_nothing_is_said_where_a_configuration_stands_out(gain: float) -> None:
    assert lost_in_noise([trial(1, *WIDE), trial(2, gain, gain, gain, gain, gain)]) is None


def test_nothing_is_said_before_anything_has_a_figure() -> None:
    assert lost_in_noise([]) is None
    assert lost_in_noise([trial(1, state=TrialState.FAILED)]) is None
    assert lost_in_noise([trial(1, *WIDE, state=TrialState.FAILED)]) is None
