"""Figures of CHANGED are from R 4.2.2's t.test(x): mean 0.02833, 0.0157284506519 … 0.0409382160147."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pgdyno.model.experiments.experiment import Stopping
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.verdict import Decision, Equivalence, Interval, Verdict
from pgdyno.stats.decision import adjust, adjusted_p_values, decide, signed_rank_p_value

CHANGED = [[0.031], [0.018], [0.044], [0.027], [0.012], [0.038]]
UNCHANGED = [[0.003], [-0.006], [0.008], [-0.002], [0.005], [-0.007], [0.004], [0.001]]


def judge(
    log_ratios: Sequence[Sequence[float]],
    metric: str = "throughput_tps",
    stopping: Stopping = Stopping.FIXED,
    workload: str = "pgbench-select",
) -> Verdict:
    return decide(
        log_ratios,
        workload=workload,
        metric=METRICS[metric],
        variant="tuned",
        baseline="default",
        level=0.95,
        equivalence_margin=0.02,
        power=0.80,
        stopping=stopping,
        void_blocks=3,
    )


def test_a_change_for_the_better_comes_with_its_figures() -> None:
    verdict = judge(CHANGED)
    assert verdict.decision is Decision.BETTER
    assert verdict.reason == "2.9\xa0% higher, 95\xa0% interval +1.6\xa0%\xa0…\xa0+4.2\xa0%"
    assert verdict.effect == pytest.approx(math.exp(0.0283333333))
    assert verdict.interval is not None
    assert verdict.interval.low == pytest.approx(math.exp(0.0157284506519))
    assert verdict.interval.high == pytest.approx(math.exp(0.0409382160147))
    assert verdict.p_value == pytest.approx(0.00218369207)
    assert (verdict.rounds, verdict.blocks, verdict.void_blocks) == (6, 6, 3)


def test_the_mde_afterwards_follows_from_the_standard_error_found() -> None:
    """R: delta of power.t.test is 3.5139027 standard errors; the standard error is 0.0283333/5.778169766."""
    mde = judge(CHANGED).mde
    assert mde == pytest.approx(math.expm1(3.5139027291703 * 0.0283333333333 / 5.778169766), rel=1e-6)


def test_more_of_what_should_be_low_is_worse() -> None:
    verdict = judge(CHANGED, metric="latency_ms_p99")
    assert verdict.decision is Decision.WORSE
    assert verdict.reason == "2.9\xa0% higher, 95\xa0% interval +1.6\xa0%\xa0…\xa0+4.2\xa0%"


def test_a_metric_that_only_explains_never_decides() -> None:
    verdict = judge(CHANGED, metric="wal_bytes_per_transaction")
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason.endswith("this metric is explanatory and does not decide")


def test_no_difference_is_shown_and_not_assumed() -> None:
    """R: t.test(x, conf.level = .9) gives -0.0028259 … 0.0043259; TOST's p is 1.0055e-05."""
    verdict = judge(UNCHANGED)
    assert verdict.decision is Decision.EQUIVALENT
    assert (
        verdict.reason
        == "within ±2\xa0% with 95\xa0% confidence (90\xa0% interval −0.3\xa0%\xa0…\xa0+0.4\xa0%)"
    )
    assert verdict.equivalence is not None
    assert verdict.equivalence.p_value == pytest.approx(1.00547574476e-05)
    assert verdict.equivalence.interval.low == pytest.approx(math.exp(-0.00282593869826))


def test_noise_leaves_the_question_open_and_says_what_would_have_been_found() -> None:
    verdict = judge([[10 * value for value in blocks] for blocks in UNCHANGED])
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.mde is not None
    assert verdict.reason == (
        "cannot tell: the interval −3.6\xa0%\xa0…\xa0+5.4\xa0% allows both; "
        f"a change of {verdict.mde * 100:.1f}\xa0% would have been found (80\xa0% power)"
    )


def test_under_four_blocks_nothing_is_decided() -> None:
    verdict = judge([[0.5], [0.5001], [0.5002]])
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason == "only 3 of at least 4 blocks were measured"
    assert verdict.effect == pytest.approx(math.exp(0.5001))
    assert verdict.interval is None
    assert verdict.p_value is None


def test_without_any_block_there_is_not_even_an_effect() -> None:
    assert judge([]).effect is None


def test_four_rounds_give_an_interval_but_no_verdict() -> None:
    verdict = judge([[0.20, 0.21], [0.19, 0.20], [0.21, 0.19], [0.20, 0.22]])
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason == (
        "withheld: 4 rounds of started servers are too few to rule out chance, at least 5 are needed"
    )
    assert verdict.interval is not None


def test_an_effect_that_moves_is_not_averaged_into_a_verdict() -> None:
    verdict = judge([[0.01], [0.021], [0.03], [0.041], [0.05], [0.061]])
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason.startswith(
        "withheld: the ratio drifted from +1.6\xa0% to +5.7\xa0% during the experiment"
    )


def test_looking_early_takes_a_wider_interval() -> None:
    """R: the integrated mixture e-value reaches 20 at 0.00512711277392 and 0.0515395538927."""
    verdict = judge(CHANGED, stopping=Stopping.DECIDED)
    assert verdict.decision is Decision.BETTER
    assert verdict.interval is not None
    assert verdict.interval.low == pytest.approx(math.exp(0.00512711277392))
    assert verdict.interval.high == pytest.approx(math.exp(0.0515395538927))
    assert verdict.p_value == pytest.approx(math.exp(-3.73912007792), rel=1e-6)


def test_looking_after_three_rounds_excludes_nothing() -> None:
    verdict = judge([[0.2, 0.21], [0.2, 0.22], [0.19, 0.2]], stopping=Stopping.PRECISION)
    assert verdict.reason == "3 rounds are too few for an interval that is valid after every round"
    assert verdict.interval is None


def test_robustness_checks_come_from_20_blocks_on() -> None:
    few = judge([[value, value + 0.001] for (value,) in CHANGED])
    many = judge([[value, value + 0.001, value - 0.001, value + 0.002] for (value,) in CHANGED])
    assert "BCa bootstrap" not in few.checks
    assert many.checks["BCa bootstrap"].startswith("agrees: 95\xa0% interval +")
    assert many.checks["signed rank"] == "agrees: p = 0.031"  # 2/2⁶: all six rounds on one side


def test_holm_leaves_a_clear_difference_standing() -> None:
    better, equivalent = adjust([judge(CHANGED), judge(UNCHANGED, workload="pgbench-tpcb")])
    assert better.decision is Decision.BETTER
    assert better.p_adjusted == pytest.approx(2 * 0.00218369207)
    assert equivalent.decision is Decision.EQUIVALENT


def test_holm_takes_back_a_difference_that_may_be_luck_among_several() -> None:
    lucky = replace(judge(CHANGED), p_value=0.03)
    first, second = adjust([lucky, replace(lucky, workload="pgbench-tpcb", p_value=0.04)])
    assert first.decision is Decision.INCONCLUSIVE
    assert first.p_adjusted == pytest.approx(0.06)
    assert first.reason == (
        "cannot tell: 2.9\xa0% higher, 95\xa0% interval +1.6\xa0%\xa0…\xa0+4.2\xa0%, "
        "but with 2 comparisons p = 0.030 counts as 0.060 (Holm)"
    )
    assert second.decision is Decision.INCONCLUSIVE


def test_a_small_difference_that_holm_takes_back_is_equivalent_if_that_was_shown() -> None:
    shown = Equivalence(margin=0.02, p_value=0.001, interval=Interval(1.001, 1.004, 1.007, 0.90))
    lucky = replace(judge(CHANGED), p_value=0.03, equivalence=shown)
    first, _ = adjust([lucky, lucky])
    assert first.decision is Decision.EQUIVALENT
    assert (
        first.reason
        == "within ±2\xa0% with 95\xa0% confidence (90\xa0% interval +0.1\xa0%\xa0…\xa0+0.7\xa0%)"
    )


def test_metrics_are_corrected_on_their_own() -> None:
    verdicts = adjust([judge(CHANGED), judge(CHANGED, metric="latency_ms_p99")])
    assert [verdict.p_adjusted for verdict in verdicts] == [verdict.p_value for verdict in verdicts]


def test_a_verdict_without_a_test_is_left_as_it_is() -> None:
    unknown = judge([[0.1]])
    assert adjust([unknown]) == [unknown]


LOG_RATIOS = st.floats(min_value=-2.0, max_value=2.0) | st.just(0.0)
ROUNDS = st.lists(st.lists(LOG_RATIOS, max_size=4), max_size=12)


@settings(deadline=None, max_examples=50)
@given(ROUNDS, st.sampled_from(list(Stopping)))
def test_swapping_the_arms_mirrors_the_verdict(log_ratios: list[list[float]], stopping: Stopping) -> None:
    mirror = {Decision.BETTER: Decision.WORSE, Decision.WORSE: Decision.BETTER}
    one = judge(log_ratios, stopping=stopping)
    other = judge([[-value for value in blocks] for blocks in log_ratios], stopping=stopping)
    assert other.decision is mirror.get(one.decision, one.decision)


@settings(deadline=None, max_examples=50)
@given(ROUNDS, st.sampled_from(list(Stopping)))
def test_a_decision_always_rests_on_an_interval_that_contains_the_effect(
    log_ratios: list[list[float]], stopping: Stopping
) -> None:
    verdict = judge(log_ratios, stopping=stopping)
    assert verdict.reason
    if verdict.interval is None:
        assert verdict.decision is Decision.INCONCLUSIVE
    else:
        assert verdict.effect is not None
        assert verdict.interval.low <= verdict.effect <= verdict.interval.high


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
        ((0.6, 0.02, 0.02, 0.5), (1.0, 0.08, 0.08, 1.0)),
        ((0.03,), (0.03,)),
        ((), ()),
    ],
)
def test_adjusted_p_values_are_those_of_p_adjust(
    p_values: tuple[float, ...], adjusted: tuple[float, ...]
) -> None:
    assert adjusted_p_values(p_values) == pytest.approx(adjusted)


def test_the_p_value_is_that_of_wilcox_test() -> None:
    """R 4.2.2: wilcox.test(x)$p.value."""
    x = np.array([0.031, 0.018, -0.004, 0.027, 0.012, 0.038, -0.009, 0.021, 0.016, 0.007])
    assert signed_rank_p_value(x) == pytest.approx(0.013671875)


@settings(max_examples=30)
@given(st.lists(st.integers(-10, 10), min_size=1, max_size=60).filter(any))
def test_it_is_scipys_with_ties_and_rounds_without_change(x: list[int]) -> None:
    expected = float(stats.wilcoxon(x).pvalue)
    assert signed_rank_p_value(np.array(x, dtype=float)) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30)
@given(st.sets(st.integers(1, 1000), min_size=1, max_size=60), st.data())
def test_it_is_scipys_without_ties(sizes: set[int], data: st.DataObject) -> None:
    x = [data.draw(st.sampled_from((-size, size))) for size in sizes]
    expected = float(stats.wilcoxon(x).pvalue)
    assert signed_rank_p_value(np.array(x, dtype=float)) == pytest.approx(expected, rel=1e-9)
