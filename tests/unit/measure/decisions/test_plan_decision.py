"""When a plan pays: one state for every outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.synthetic import experiment as synthetic

from pgdyno.base.numbers import SPACE
from pgdyno.measure.decisions.plan_decision import (
    PlanState,
    decide,
    decide_plan,
    faster_on,
    is_futile,
    pays_at_look,
    state_of,
)
from pgdyno.measure.decisions.plan_outcome import Estimate, Outcome, Stalls
from pgdyno.model.experiments.experiment import ArmBlock, Block
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.model.experiments.statements import StatementCount
from pgdyno.model.plans.plan import Terms
from pgdyno.model.variants.durability import DurabilityReading

TERMS = Terms()
ROUNDS = 14


def measured(percent: float, error_percent: float, rounds: int = ROUNDS) -> Estimate:
    """Return an estimate of a change, with its standard error, both in percent of the logarithm."""
    return Estimate(math.log1p(percent / 100), error_percent / 100, rounds - 1.0, rounds)


SAFE = measured(-10, 3)


def outcome(throughput: Estimate | None, tail: Estimate | None = SAFE, workload: str = "read") -> Outcome:
    return Outcome(workload, throughput, tail)


@pytest.mark.parametrize(
    ("throughput", "tail", "state"),
    [
        (measured(50, 2), SAFE, PlanState.PAYS),
        (measured(3, 1), SAFE, PlanState.PAYS),
        (measured(50, 2), measured(3, 2), PlanState.PAYS),
        (measured(50, 2), measured(20, 3), PlanState.TAIL_WORSE),
        (measured(50, 2), measured(6, 4), PlanState.TAIL_UNKNOWN),
        (measured(50, 2), measured(-5, 15), PlanState.TAIL_UNKNOWN),
        (measured(50, 2), None, PlanState.TAIL_UNKNOWN),
        (measured(0, 0.5), SAFE, PlanState.NOTHING),
        (measured(-2, 0.5), measured(50, 1), PlanState.NOTHING),
        (measured(-10, 1), SAFE, PlanState.SLOWER),
        (measured(2, 3), SAFE, PlanState.UNDECIDED),
        (None, SAFE, PlanState.UNDECIDED),
    ],
)
def test_states_on_one_workload(throughput: Estimate | None, tail: Estimate | None, state: PlanState) -> None:
    assert state_of([outcome(throughput, tail)], TERMS) is state


def test_a_tail_that_is_longer_within_the_limit_is_safe() -> None:
    tail = measured(4, 1)  # surely longer, surely by less than 10 %
    assert state_of([outcome(measured(50, 2), tail)], TERMS) is PlanState.PAYS
    strict = replace(TERMS, max_tail_loss=0.03)
    assert state_of([outcome(measured(50, 2), tail)], strict) is PlanState.TAIL_WORSE


def test_one_slow_workload_outweighs_any_gain() -> None:
    found = [outcome(measured(50, 2), SAFE), outcome(measured(-9, 1), SAFE, "write")]
    assert state_of(found, TERMS) is PlanState.SLOWER


def test_a_workload_that_may_have_lost_leaves_it_undecided() -> None:
    found = [outcome(measured(50, 2), SAFE), outcome(measured(-2, 4), SAFE, "write")]
    assert state_of(found, TERMS) is PlanState.UNDECIDED


def test_a_gain_has_to_be_worth_the_change() -> None:
    found = [outcome(measured(4, 0.5), SAFE)]
    assert state_of(found, Terms(min_gain=0.02)) is PlanState.PAYS
    assert state_of(found, Terms(min_gain=0.05)) is PlanState.NOTHING
    assert state_of([outcome(measured(5, 1), SAFE)], Terms(min_gain=0.05)) is PlanState.UNDECIDED


def test_of_several_workloads_each_has_to_survive_holms_correction() -> None:
    barely = Estimate(0.1, 0.1 / 2.3, 13.0, 14)  # one-sided p = 0.019: above 0.025 / 2, below 0.025
    certain = measured(50, 2)
    assert faster_on([outcome(barely, SAFE)], TERMS) == ("read",)
    assert faster_on([outcome(barely, SAFE), outcome(barely, SAFE, "write")], TERMS) == ()
    assert faster_on([outcome(certain, SAFE), outcome(barely, SAFE, "write")], TERMS) == ("read", "write")


estimates = st.builds(
    Estimate,
    st.floats(-2, 2),
    st.floats(1e-6, 1),
    st.floats(2, 40),
    st.integers(5, 40),
)


@given(
    st.lists(st.tuples(st.none() | estimates, st.none() | estimates), max_size=4),
    st.floats(0, 0.2),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
)
def test_every_outcome_has_one_state_with_its_meaning(
    pairs: list[tuple[Estimate | None, Estimate | None]], gain: float, loss: float, tail_loss: float
) -> None:
    outcomes = [outcome(*pair, workload=str(place)) for place, pair in enumerate(pairs)]
    terms = Terms(gain, loss, tail_loss)
    state = decide(outcomes, terms).state
    known = [one.throughput for one in outcomes if one.throughput]
    if state in {PlanState.PAYS, PlanState.TAIL_WORSE, PlanState.TAIL_UNKNOWN}:
        assert len(known) == len(outcomes) > 0
        assert min(one.lower() for one in known) >= 1 - loss
        assert any(one.lower(0.025) > 1 + gain for one in known)
    if state is PlanState.PAYS:
        assert all(one.tail and one.tail.upper() <= 1 + tail_loss for one in outcomes)
    at = 0.05 / max(1, len(outcomes))
    assert (state is PlanState.SLOWER) is any(one.upper(at) < 1 - loss for one in known)


def test_what_is_open_says_how_many_rounds_would_decide() -> None:
    found = decide([outcome(measured(2.5, 1.5), SAFE)], TERMS)
    assert found.state is PlanState.UNDECIDED
    # Above 1 once 2.5 % is about two standard errors: (2 · 1.5 / 2.5)² ≈ 1.45 × 14 rounds.
    assert found.rounds_to_decide is not None
    assert 4 <= found.rounds_to_decide <= 10
    assert decide([outcome(measured(50, 2), SAFE)], TERMS).rounds_to_decide is None
    assert decide([outcome(measured(2, 40), SAFE)], TERMS).rounds_to_decide is None  # not within 30 × as many


def test_slower_somewhere_is_corrected_for_the_number_of_workloads() -> None:
    # Its bound at 5 % is 0.9446, at 2.5 % 0.9513: exp(−0.0834 + (1.770933 or 2.160369) · 0.0149), t(13).
    one, other = outcome(measured(-8, 1.49)), outcome(measured(0, 1.49), workload="write")
    assert state_of([one], TERMS) is PlanState.SLOWER
    assert state_of([one, other], TERMS) is not PlanState.SLOWER


def test_slower_somewhere_allows_for_the_bias_of_an_experiment() -> None:
    # ln 0.924 + 1.770933 · 0.0149, t(13): 0.9487. With √(0.0149² + 0.005²) = 0.015716: 0.9501.
    found = measured(-7.6, 1.49)
    assert state_of([outcome(found)], TERMS) is PlanState.SLOWER
    biased = replace(found, bias=0.005)
    assert biased.upper_with_bias() == pytest.approx(0.9501, abs=5e-5)
    assert biased.upper() == found.upper() == pytest.approx(0.9487, abs=5e-5)
    assert state_of([outcome(biased)], TERMS) is PlanState.NOTHING
    assert state_of([outcome(replace(measured(-9, 1.49), bias=0.005))], TERMS) is PlanState.SLOWER


def test_a_look_rejects_by_a_stricter_bound_than_the_end() -> None:
    gains = outcome(measured(50, 2), workload="write")
    found = [outcome(measured(-8.3, 1.49)), gains]
    assert state_of(found, TERMS) is PlanState.SLOWER
    assert not is_futile(found, TERMS)
    assert is_futile([outcome(measured(-10, 1.49)), gains], TERMS)


def test_futile_is_what_more_rounds_would_hardly_change() -> None:
    assert is_futile([outcome(measured(-9, 1), SAFE)], TERMS)
    assert is_futile([outcome(measured(0, 0.3), SAFE)], TERMS)
    assert not is_futile([outcome(measured(50, 2), measured(50, 2))], TERMS)


def test_the_sentence_says_it_to_somebody_who_has_to_decide() -> None:
    found = decide([outcome(measured(50, 2), SAFE, "sysbench-read-only")], TERMS)
    # ln 1.5 ± 2.160369 · 0.02, t(13) as above: 1.4366 … 1.5662
    assert found.sentence == (
        "The plan pays: throughput +50.0\xa0% (+43.7\xa0% … +56.6\xa0%) on sysbench-read-only; "
        "on no workload can the mean of the slowest 5\xa0% of transactions be 10\xa0% longer."
    )
    assert found.pays
    guarded = decide([replace(outcome(measured(50, 2), SAFE), p99=measured(0, 5))], TERMS)
    assert guarded.sentence.endswith(
        "; on no workload can the mean of the slowest 5\xa0% of transactions be 10\xa0% longer, "
        "or the 99th percentile 25\xa0%."
    )


@pytest.mark.parametrize(
    ("p99", "state"),
    [
        (measured(0, 5), PlanState.PAYS),
        (measured(10, 7), PlanState.PAYS),  # at most 24.5 %: exp(0.0953 + 1.770933 · 0.07), t(13)
        (measured(11, 7), PlanState.TAIL_UNKNOWN),
        (measured(25, 7), PlanState.TAIL_WORSE),
        (measured(0, 20), PlanState.TAIL_UNKNOWN),
    ],
)
def test_the_99th_percentile_has_a_limit_of_its_own(p99: Estimate, state: PlanState) -> None:
    found = replace(outcome(measured(50, 2), SAFE), p99=p99)
    assert state_of([found], TERMS) is state
    assert state_of([found], replace(TERMS, max_p99_loss=9)) is PlanState.PAYS


def test_a_stall_of_one_round_is_not_averaged_away() -> None:
    safe = outcome(measured(50, 2), SAFE)
    assert state_of([replace(safe, stalls=Stalls(1.02, 1.09, ROUNDS))], TERMS) is PlanState.PAYS
    assert state_of([replace(safe, stalls=Stalls(1.02, 1.11, ROUNDS))], TERMS) is PlanState.TAIL_UNKNOWN


def test_it_is_said_how_rare_a_stall_may_be_that_was_not_seen() -> None:
    found = decide([replace(outcome(measured(50, 2), SAFE), stalls=Stalls(1.0, 1.05, 10))], TERMS)
    assert found.reasons[-1] == (
        "a stall that occurs in fewer than 3 of 10 rounds on average may have been missed"
    )
    assert "over all rounds together 0.0\xa0% (at most +5.0\xa0%)" in found.reasons[0]


def test_an_experiment_is_decided_from_its_blocks() -> None:
    experiment = synthetic()
    found = decide_plan(experiment, "plan", TERMS)
    assert [one.workload for one in found.outcomes] == list(experiment.workloads)
    assert found.outcomes[0].throughput is not None


def test_servers_that_are_not_equally_durable_decide_nothing() -> None:
    readings = (DurabilityReading("default", {"fsync": "on"}), DurabilityReading("plan", {"fsync": "off"}))
    found = decide_plan(replace(synthetic(), durability=readings), "plan", TERMS)
    assert (found.state, found.pays) == (PlanState.UNDECIDED, False)
    assert found.sentence == (
        "The plan was not measured fairly: its server was not as durable as the baseline's."
    )
    assert found.reasons[0].startswith("the server of plan ran with fsync=off")


def test_a_workload_that_was_not_like_its_original_is_said() -> None:
    alike, unlike = Likeness({"calls": 0.9}, ()), Likeness({"calls": 1.0, "time": 0.784}, ())
    found = decide_plan(replace(synthetic(), likenesses={"shop": unlike, "bank": alike}), "plan", TERMS)
    assert found.sentence.endswith(" The replay only resembles your workload (likeness 0.78 of shop).")
    found = decide_plan(replace(synthetic(), likenesses={"bank": alike}), "plan", TERMS)
    assert "your workload" not in found.sentence
    another = Likeness({"calls": 0.69}, ())
    found = decide_plan(replace(synthetic(), likenesses={"shop": another}), "plan", TERMS)
    assert found.sentence.endswith(" The replay is not your workload (likeness 0.69 of shop).")


def test_no_gain_is_said_of_the_plan_and_the_costliest_statement_named() -> None:
    some = {"select-orders": StatementCount(400, 890.0, 1600, 694_000, 0), "others": _count_of(110.0)}
    blocks = tuple(
        Block(
            "shop",
            number,
            0,
            0,
            (_arm("default", 1000.0, some), _arm("plan", 999.0 + 2 * (number % 2), some)),
        )
        for number in range(ROUNDS)
    )
    shop = replace(synthetic(), workloads=("shop",), blocks=blocks, verdicts=())
    found = decide_plan(shop, "plan", TERMS)
    assert found.state is PlanState.NOTHING
    assert found.sentence.replace(SPACE, " ") == (
        "No gain by the plan: no workload can be 2 % faster. On shop, 89 % of the statements' time is "
        "select-orders, with 1,735 blocks and 4 rows per call. pgdyno profile shows its plan."
    )
    alike = {str(number): _count_of(1.0) for number in range(6)}
    level = tuple(
        replace(one, arms=tuple(replace(its, statements=alike) for its in one.arms)) for one in blocks
    )
    assert decide_plan(replace(shop, blocks=level), "plan", TERMS).sentence.endswith("faster.")


def _count_of(time_ms: float) -> StatementCount:
    return StatementCount(100, time_ms, 100, 300, 0)


def _arm(name: str, rate: float, statements: Mapping[str, StatementCount]) -> ArmBlock:
    values = dict.fromkeys(("throughput_tps", "latency_mean_ms", "latency_p99_ms"), rate)
    return ArmBlock(name, 1000, 1.0, values, statements=statements)


def test_a_look_spends_a_fifth_of_the_error_and_leaves_the_rest() -> None:
    # t(13): 5 % above 1.771, 4 % above 1.899, 1 % above 2.650.
    tail = measured(0, 5.2)  # 1.771 · 5.2 % = 9.2 %, below ln 1.1 = 9.5 %; 1.899 · 5.2 % = 9.9 %
    assert state_of([outcome(measured(50, 2), tail)], Terms()) is PlanState.PAYS
    assert state_of([outcome(measured(50, 2), tail)], Terms(looks=2)) is PlanState.TAIL_UNKNOWN
    close = [outcome(measured(50, 2), measured(0, 4.5))]  # 1.899 · 4.5 % = 8.5 %; 2.650 · 4.5 % = 11.9 %
    assert state_of(close, Terms(looks=2)) is PlanState.PAYS
    assert not pays_at_look(close, Terms(looks=2))
    assert pays_at_look([outcome(measured(50, 2), measured(0, 3))], Terms(looks=2))
    lost = [outcome(measured(50, 2)), outcome(measured(-1, 1.8), workload="write")]
    assert state_of(lost, Terms(looks=2)) is PlanState.PAYS  # −1.0 − 1.899 · 1.8 = −4.4 %
    assert not pays_at_look(lost, Terms(looks=2))  # −1.0 − 2.650 · 1.8 = −5.8 %


@pytest.mark.parametrize(
    ("alone", "state"),
    [
        (measured(0, 10, 3), PlanState.PAYS),  # t(2) has 5 % above 2.920: 29 %, below ln 1.5 = 41 %
        (measured(0, 15, 3), PlanState.TAIL_UNKNOWN),  # 44 %
        (measured(60, 3, 3), PlanState.TAIL_WORSE),
        (None, PlanState.TAIL_UNKNOWN),
    ],
)
def test_the_tail_while_a_server_runs_alone_is_guarded_at_50_percent(
    alone: Estimate | None, state: PlanState
) -> None:
    found = replace(outcome(measured(50, 2)), alone=alone, has_stretches=True)
    assert state_of([found], TERMS) is state
    decision = decide([found], TERMS)
    assert "while no other server had load" in " ".join((decision.sentence, *decision.reasons))
    assert state_of([found], Terms(looks=2)) is state  # later rounds have no stretches
