"""Verdicts on single statements, by the server's time per call in each round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.golden.synthetic import experiment as synthetic

from pgdyno.measure.blocks.blocks import with_trimmed_statements
from pgdyno.measure.decisions.plan_outcome import gate_code
from pgdyno.measure.verdicts.statements import costliest, statement_verdicts
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.statements import UNNAMED, StatementCount, StatementVerdict
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.variant import Variant

ROUNDS = 8
NOISE = (1.00, 1.01, 0.99, 1.005, 0.995, 1.01, 1.0, 0.99)
"""Factors of the variant's time by round; their logarithms have the mean -0.0000 and a spread of 0.8 %."""


def counted(calls: int, ms: float) -> StatementCount:
    return StatementCount(calls, calls * ms, calls, 3 * calls, 0)


def arm(name: str, statements: Mapping[str, StatementCount]) -> ArmBlock:
    return ArmBlock(name, 1000, 1.0, {"throughput_tps": 1000.0}, statements=statements)


def experiment(*blocks: Block, variants: tuple[str, ...] = ("a", "b"), bias: float = 0.0) -> Experiment:
    return replace(
        synthetic(),
        design=Design(bias=bias),
        variants=tuple(map(Variant, variants)),
        baseline="a",
        workloads=("w",),
        blocks=blocks,
        verdicts=(),
    )


def measured(ratio: float, calls: int = 1000, ms: float = 1.0) -> Experiment:
    """Return rounds of two statements: "point" takes ``ratio`` times as long in b, "scan" as long."""
    return experiment(
        *(
            Block(
                "w",
                round_,
                0,
                0,
                (
                    arm("a", {"point": counted(calls, ms), "scan": counted(1000, 2.0)}),
                    arm(
                        "b", {"point": counted(calls, ms * ratio * noise), "scan": counted(1000, 2.0 / noise)}
                    ),
                ),
            )
            for round_, noise in enumerate(NOISE)
        )
    )


def verdict_on(name: str, found: Experiment) -> StatementVerdict:
    (verdict,) = [one for one in statement_verdicts(found) if one.statement == name]
    return verdict


def test_the_costliest_statement_is_that_of_the_baseline() -> None:
    found = costliest(measured(20.0, calls=500), "w")  # ms in eight rounds: 500 of point, 2000 of scan
    assert found == ("scan", 0.8, StatementCount(8000, 16000.0, 8000, 24000, 0))
    of_others = {"point": counted(10, 1.0), UNNAMED: counted(30, 1.0)}
    some = experiment(Block("w", 0, 0, 0, (arm("a", of_others), arm("b", of_others))))
    assert costliest(some, "w") == ("point", 0.25, counted(10, 1.0))
    assert costliest(some, "another") is None


def test_the_effect_is_the_mean_over_rounds_of_the_ratio_of_times_per_call() -> None:
    found = verdict_on("point", measured(1.2))
    logs = [math.log(1.2 * one) for one in NOISE]
    assert found.effect == pytest.approx(math.exp(np.mean(logs)))
    # Both statements are found or not: one of two is found here, so its interval is at 1 - 5 % × 1/(2 × 1.5).
    level = 1 - 0.05 / (2 * 1.5)
    low, high = stats.ttest_1samp(logs, 0.0).confidence_interval(level)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.decision is Decision.WORSE
    assert found.share == pytest.approx(1 / 3)
    assert (found.before_ms, found.after_ms) == pytest.approx((1.0, 1.2 * np.mean(NOISE)))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (0.8, Decision.BETTER),
        (1.0, Decision.EQUIVALENT),
        (1.03, Decision.INCONCLUSIVE),  # certainly slower, and not certainly by 3 %
        (1.06, Decision.WORSE),
    ],
)
def test_decisions(ratio: float, expected: Decision) -> None:
    assert verdict_on("point", measured(ratio)).decision is expected
    assert verdict_on("scan", measured(ratio)).decision is Decision.EQUIVALENT


def test_a_difference_that_is_too_small_to_matter_is_named() -> None:
    assert verdict_on("point", measured(1.03)).reason == "slower, but not certainly by more than 3\xa0%"


def test_the_bias_of_an_experiment_is_in_the_interval() -> None:
    without, with_ = measured(1.0), replace(measured(1.0), design=Design(bias=0.02))
    narrow, wide = (verdict_on("point", one).interval for one in (without, with_))
    assert narrow is not None
    assert wide is not None
    assert wide.half_width > 3 * narrow.half_width


def test_rare_and_cheap_statements_have_no_verdict() -> None:
    rare = verdict_on("point", measured(2.0, calls=24, ms=100.0))
    assert (rare.effect, rare.reason) == (None, "24 counted calls a round; at least 25 are needed")
    cheap = verdict_on("point", measured(2.0, ms=0.004))
    assert (cheap.effect, cheap.reason) == (None, "less than 0.5\xa0% of the time")


def test_a_statement_that_only_one_server_runs_has_no_verdict() -> None:
    found = experiment(
        *(
            Block("w", round_, 0, 0, (arm("a", {"x": counted(500, 1.0)}), arm("b", {"y": counted(500, 1.0)})))
            for round_ in range(ROUNDS)
        )
    )
    x, y = verdict_on("x", found), verdict_on("y", found)
    assert (x.before_ms, x.after_ms, x.effect) == (1.0, None, None)
    assert (y.before_ms, y.after_ms, y.effect) == (None, 1.0, None)


def test_few_rounds_decide_nothing() -> None:
    whole = measured(2.0)
    found = verdict_on("point", replace(whole, blocks=whole.blocks[:4]))
    assert (found.decision, found.reason) == (Decision.INCONCLUSIVE, "4 rounds; at least 5 are needed")


def test_void_blocks_do_not_count() -> None:
    whole = measured(1.0)
    wild = Block(
        "w", 0, 1, 0, tuple(arm(name, {"point": counted(1000, 99.0)}) for name in "ab"), void="stolen"
    )
    assert statement_verdicts(replace(whole, blocks=(*whole.blocks, wild))) == statement_verdicts(whole)


def test_without_counts_there_are_no_verdicts() -> None:
    assert statement_verdicts(experiment(Block("w", 0, 0, 0, (arm("a", {}), arm("b", {}))))) == ()


def test_one_server_has_times_and_no_effects() -> None:
    alone = experiment(Block("w", 0, 0, 0, (arm("a", {"x": counted(500, 1.5)}),)), variants=("a",))
    (found,) = statement_verdicts(alone)
    assert (found.statement, found.share, found.before_ms, found.effect) == ("x", 1.0, 1.5, None)


def test_a_gate_fails_on_a_slower_statement() -> None:
    assert gate_code(measured(1.3)) == 5
    assert gate_code(measured(1.0)) == 6  # no verdict on throughput


def with_throughput(found: Experiment, effect: float) -> Experiment:
    (verdict,) = [
        replace(one, workload="w", variant="b", baseline="a", effect=effect, decision=Decision.BETTER)
        for one in synthetic().verdicts
        if one.metric == THROUGHPUT
    ][:1]
    return replace(found, verdicts=(verdict,))


@pytest.mark.parametrize(("effect", "code"), [(1.35, 0), (0.85, 0), (1.08, 5), (0.95, 5)])
def test_a_gate_does_not_fail_on_statements_under_another_load(effect: float, code: int) -> None:
    assert gate_code(with_throughput(measured(1.3), effect)) == code


@pytest.mark.parametrize(
    ("slow", "fast", "expected", "code"), [("a", "b", Decision.BETTER, 6), ("b", "a", Decision.WORSE, 5)]
)
def test_a_statement_that_is_next_to_nothing_on_one_server_has_a_verdict(
    slow: str, fast: str, expected: Decision, code: int
) -> None:
    # 9 % of one server's time, 0.04 % of the other's.
    arms = {
        slow: arm(slow, {"big": counted(1000, 20.0), "lookup": counted(100, 20.0)}),
        fast: arm(fast, {"big": counted(1000, 20.0), "lookup": counted(400, 0.02)}),
    }
    block = with_trimmed_statements(Block("w", 0, 0, 0, (arms["a"], arms["b"])))
    found = experiment(*(replace(block, round=round_) for round_ in range(ROUNDS)))
    verdict = verdict_on("lookup", found)
    assert (verdict.decision, gate_code(found)) == (expected, code)
    assert verdict.effect == pytest.approx(0.001 if slow == "a" else 1000.0)


def test_statements_that_are_not_of_the_workload_have_a_share_and_no_verdict() -> None:
    others = {UNNAMED: counted(1000, 1.0), "x": counted(1000, 3.0)}
    found = experiment(
        *(Block("w", one, 0, 0, (arm("a", others), arm("b", others))) for one in range(ROUNDS))
    )
    verdict = verdict_on(UNNAMED, found)
    assert (verdict.share, verdict.effect) == (0.25, None)
    assert verdict.reason == "statements that the workload does not list"
