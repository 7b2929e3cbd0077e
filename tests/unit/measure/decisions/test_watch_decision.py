"""A watch that looks after every pair seldom sees harm where there is none, and sees it where there is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.accelerate.view import watch_text
from pgdyno.measure.decisions.watch_decision import (
    FALSE_ALARMS,
    Watched,
    WatchState,
    harm_p_value,
    is_harm,
    log_ratio,
    watched,
)
from pgdyno.postgres.statement_counts import Traffic
from pgdyno.stats.sample import FloatArray, Sample

WATCHES, PAIRS = 4000, 30


def alarms(effect: float, spread: float, noise: FloatArray) -> float:
    """Return the share of watches that see harm at any of their looks. Shapes: noise (watches, pairs)."""
    seen = np.zeros(noise.shape[0], dtype=bool)
    for looked in range(4, noise.shape[1] + 1):
        pairs = Sample(effect + spread * noise[:, :looked], np.ones(looked, dtype=np.int64))
        seen |= harm_p_value(pairs) <= FALSE_ALARMS
    return float(seen.mean())


@pytest.mark.parametrize("effect", [0.0, -0.05])
def test_without_harm_at_most_one_watch_in_twenty_sees_some(effect: float) -> None:
    noise = np.random.default_rng(1).normal(size=(WATCHES, PAIRS))
    assert alarms(effect, 0.2, noise) <= FALSE_ALARMS


def test_nor_does_it_where_figures_have_heavy_tails() -> None:
    noise = np.random.default_rng(2).standard_t(3, size=(WATCHES, PAIRS))
    assert alarms(0.0, 0.2, noise) <= FALSE_ALARMS


def test_harm_of_one_spread_is_seen_by_nearly_every_watch() -> None:
    noise = np.random.default_rng(3).normal(size=(WATCHES, PAIRS))
    assert alarms(0.2, 0.2, noise) >= 0.95


def test_the_figure_of_a_pair_is_the_ratio_of_times_per_transaction() -> None:
    # 2 ms per transaction without the plan, 3 ms with it.
    assert log_ratio(Traffic(100, 200.0), Traffic(50, 150.0)) == pytest.approx(math.log(1.5))


@pytest.mark.parametrize(
    "period", [Traffic(19, 5.0), Traffic(0, 0.0), Traffic(100, 0.0), Traffic(-700, -3.0), Traffic(100, -3.0)]
)
def test_periods_with_little_traffic_or_reset_counters_do_not_count(period: Traffic) -> None:
    assert log_ratio(period, Traffic(100, 5.0)) is None
    assert log_ratio(Traffic(100, 5.0), period) is None


def test_three_pairs_show_nothing_however_large() -> None:
    assert not is_harm([1.0, 1.1, 0.9])
    assert is_harm([1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    assert not is_harm([-1.0, -1.1, -0.9, -1.0, -1.05, -0.95])


def test_what_too_few_pairs_show_is_no_proof() -> None:
    assert watched([0.0] * 2, 6, is_applied=False).state is WatchState.TOO_LITTLE
    assert watched([0.01, -0.01, 0.02, -0.02], 6, is_applied=True).state is WatchState.NO_HARM
    assert watched([0.0] * 2, 6, is_applied=False, reason="gone").state is WatchState.ENDED_EARLY


MEAN, OF = "mean time per transaction", "30 pairs of periods"


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (
            Watched(WatchState.HARM, 8, 30, 1.234, is_applied=False),
            f"The server's own transactions take longer with the plan: {MEAN} +23.4\xa0%, 8 of {OF}.",
        ),
        (
            Watched(WatchState.NO_HARM, 29, 30, 0.97, is_applied=False),
            f"The server's own transactions show no harm from the plan: {MEAN} −3.0\xa0%, 29 of {OF}.",
        ),
        (
            Watched(WatchState.TOO_LITTLE, 2, 30, 1.0, is_applied=False),
            f"Too little traffic to detect harm: 2 of {OF} had at least 20 transactions in each.",
        ),
        (
            Watched(WatchState.ENDED_EARLY, 2, 30, 1.0, is_applied=False, reason="lost the connection"),
            "The watch ended early: lost the connection.",
        ),
    ],
)
def test_sentences_say_what_was_seen_and_what_is_in_force(seen: Watched, text: str) -> None:
    assert watch_text(seen) == f"{text} The original configuration is in force."
    alarm = "" if seen.state is WatchState.NO_HARM else "ALARM: "
    assert watch_text(replace(seen, is_applied=True)) == f"{alarm}{text} The plan is in force."


def test_an_alarm_is_a_plan_in_force_without_proof() -> None:
    for state in WatchState:
        for is_applied in (True, False):
            seen = Watched(state, 1, 1, 1.0, is_applied=is_applied)
            assert seen.is_alarm == (is_applied and state is not WatchState.NO_HARM)
