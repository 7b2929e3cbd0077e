"""Nothing is said in favour of a server that gives more transactions up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats
from tests.golden.synthetic import experiment as synthetic

from pgdyno.measure.decisions.plan_decision import PlanState, decide_plan
from pgdyno.measure.decisions.plan_outcome import gate_code
from pgdyno.measure.decisions.stopping import is_finished
from pgdyno.measure.verdicts.analysis import analyse, contrast_intervals
from pgdyno.measure.verdicts.failures import doubts, failed_transactions, is_forbidden, is_shown
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment, Stopping
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.model.plans.plan import Terms
from pgdyno.model.variants.variant import Variant

NAMES = ("a", "b")
DONE = 10_000
DESIGN = Design()


def arm(name: str, tps: float, share: float) -> ArmBlock:
    failed = round(DONE * share / (1 - share))
    failures = (Failures("40001", failed, "pay"),) if failed else ()
    return ArmBlock(name, DONE, 1.0, {"throughput_tps": tps}, failures=failures)


def blocks(gain: float, *shares: tuple[float, float]) -> tuple[Block, ...]:
    """Return a block for each round, with the shares of both that failed; b gains about so much."""
    gains = [gain * 1.001 ** (round_ % 3 - 1) for round_ in range(len(shares))]
    return tuple(
        Block("w", round_, 0, 0, (arm("a", 100.0, of_a), arm("b", 100.0 * gains[round_], of_b)))
        for round_, (of_a, of_b) in enumerate(shares)
    )


def verdict(measured: tuple[Block, ...], design: Design = DESIGN) -> Verdict:
    (found,) = analyse(measured, workloads=["w"], variants=NAMES, baseline="a", design=design)
    return found


def experiment(measured: tuple[Block, ...]) -> Experiment:
    return replace(
        synthetic(),
        variants=(Variant("a"), Variant("b")),
        baseline="a",
        workloads=("w",),
        blocks=measured,
        verdicts=(verdict(measured),),
        likenesses={},
        durability=(),
        cells={},
    )


@pytest.mark.parametrize(
    ("gain", "of_a", "of_b", "decision"),
    [
        (1.5, 0.0, 0.0, Decision.BETTER),
        (1.5, 0.04, 0.045, Decision.BETTER),
        (1.5, 0.01, 0.0, Decision.BETTER),  # fewer fail with it
        (1.5, 0.30, 0.0, Decision.BETTER),
        (1.5, 0.01, 0.025, Decision.INCONCLUSIVE),
        (1.5, 0.06, 0.06, Decision.INCONCLUSIVE),
        (1.5, 0.01, 0.54, Decision.INCONCLUSIVE),
        (1.0, 0.0, 0.0, Decision.EQUIVALENT),
        (1.0, 0.0, 0.02, Decision.INCONCLUSIVE),
        (1.0, 0.02, 0.0, Decision.INCONCLUSIVE),
        (0.7, 0.0, 0.02, Decision.WORSE),  # more fail, and it is slower all the same
        (0.7, 0.02, 0.0, Decision.INCONCLUSIVE),
    ],
)
def test_what_may_be_said(gain: float, of_a: float, of_b: float, decision: Decision) -> None:
    found = verdict(blocks(gain, *[(of_a, of_b)] * 6))
    assert found.decision is decision
    assert found.is_withheld is (decision is Decision.INCONCLUSIVE)


def test_the_reason_has_both_shares_and_what_failed() -> None:
    found = verdict(blocks(2.77, *[(0.01, 0.54)] * 6))
    assert found.reason.replace("\N{NO-BREAK SPACE}", " ") == (
        "54.0 % of the transactions of b failed, 1.0 % of a "
        "(70434 of SQLSTATE 40001 (serialization_failure) in pay): at most 5 % may"
    )
    assert found.effect == pytest.approx(2.77, rel=0.01)


def test_it_is_the_upper_bound_of_the_difference_that_counts() -> None:
    shares = [0.0, 0.0, 0.015, 0.0, 0.0, 0.0]
    assert stats.ttest_1samp(shares, 0).confidence_interval(0.9).high < 0.009
    assert doubts(blocks(1.5, *[(0.0, share) for share in shares]), "w", "b", "a") == ""
    shares[2] = 0.04
    assert sum(shares) / 6 < 0.01
    assert stats.ttest_1samp(shares, 0).confidence_interval(0.9).high > 0.02
    assert "failed" in doubts(blocks(1.5, *[(0.0, share) for share in shares]), "w", "b", "a")


def test_more_failures_are_shown_only_if_chance_does_not_explain_them() -> None:
    chance = blocks(1.5, *[(0.012, share) for share in (0.0, 0.04, 0.0, 0.01, 0.02, 0.0)])
    assert "the difference may be as much as " in doubts(chance, "w", "b", "a")
    assert not is_shown(chance, "w", "b", "a")
    assert gate_code(experiment(chance)) == 6
    found = decide_plan(experiment(chance), "b", Terms())
    assert (found.state, found.pays) == (PlanState.UNDECIDED, False)
    fewer = blocks(1.5, *[(0.08, 0.07)] * 6)  # too many, and yet fewer than before
    assert verdict(fewer).decision is Decision.INCONCLUSIVE
    assert not is_shown(fewer, "w", "b", "a")


def test_one_round_alone_is_judged_by_its_counts() -> None:
    assert not is_shown(blocks(1.5, (0.010, 0.012)), "w", "b", "a")
    assert is_shown(blocks(1.5, (0.010, 0.030)), "w", "b", "a")


def test_an_experiment_that_looks_does_not_end_by_failures_of_its_first_rounds() -> None:
    design = Design(stopping=Stopping.DECIDED)
    for rounds in range(1, 6):
        measured = blocks(1.02, *[(0.004, share) for share in [0.004, 0.018, 0.004, 0.018, 0.004][:rounds]])
        assert not is_finished([verdict(measured, design)], design, measured)


def test_blocks_that_do_not_count_do_not_count_here() -> None:
    first, *others = blocks(1.5, (0.0, 0.5), *[(0.0, 0.0)] * 6)
    assert doubts((first, *others), "w", "b", "a") != ""
    assert doubts((replace(first, void="too noisy"), *others), "w", "b", "a") == ""


def test_failures_are_listed_for_all_variants_of_a_workload_where_any_failed() -> None:
    found = failed_transactions(experiment(blocks(1.5, *[(0.0, 0.02)] * 6)))
    assert [(one.variant, one.share) for one in found] == [("a", 0.0), ("b", pytest.approx(0.02, rel=0.01))]
    assert found[1].failures == (Failures("40001", 6 * 204, "pay"),)
    assert failed_transactions(experiment(blocks(1.5, *[(0.0, 0.0)] * 6))) == ()


def test_a_plan_with_which_more_fails_does_not_pay() -> None:
    failing = decide_plan(experiment(blocks(1.5, *[(0.0, 0.02)] * 8)), "b", Terms())
    assert (failing.state, failing.pays) == (PlanState.FAILING, False)
    assert failing.sentence == "The plan does not pay: more transactions fail with it."
    assert failing.rounds_to_decide is None
    slower = decide_plan(experiment(blocks(0.7, *[(0.02, 0.0)] * 8)), "b", Terms())
    assert slower.state is PlanState.UNDECIDED


def test_the_gate_takes_more_failures_for_a_regression() -> None:
    assert gate_code(experiment(blocks(1.5, *[(0.0, 0.0)] * 6))) == 0
    assert gate_code(experiment(blocks(1.5, *[(0.0, 0.02)] * 6))) == 5
    assert gate_code(experiment(blocks(0.7, *[(0.02, 0.0)] * 6))) == 6


def test_nothing_is_attributed_where_more_fails() -> None:
    weights = {"b": {"b": 1.0, "a": -1.0}}
    (found,) = contrast_intervals(experiment(blocks(1.5, *[(0.0, 0.0)] * 6)), "w", weights).values()
    assert math.isclose(found.point, 1.5, rel_tol=0.01)
    assert contrast_intervals(experiment(blocks(1.5, *[(0.0, 0.02)] * 6)), "w", weights) == {}


def test_what_failures_forbid_is_not_waited_for() -> None:
    design = Design(stopping=Stopping.DECIDED)
    measured = blocks(1.5, *[(0.0, 0.02)] * 30)
    found = verdict(measured, design)
    assert is_forbidden(found, measured)
    assert is_finished([found], design, measured)
    assert not is_finished([replace(found, workload="other")], design, measured)


def test_a_verdict_of_an_earlier_version_is_forbidden_too() -> None:
    measured = blocks(1.5, *[(0.0, 0.54)] * 6)
    found = verdict(measured)
    assert is_forbidden(replace(found, reason=found.reason.replace(" (serialization_failure)", "")), measured)
    assert not is_forbidden(replace(found, reason="too few rounds count"), measured)
