"""When an experiment ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.measure.decisions.stopping import (
    counts_nothing,
    is_finished,
    is_too_noisy,
    minimum_rounds,
    rounds_to_repeat,
    rounds_within,
    time_needed,
    typical_void_reason,
    void_share,
)
from pgdyno.measure.design.schedule import alternating
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Stopping
from pgdyno.model.experiments.verdict import Decision, Interval, Verdict
from pgdyno.workload.workload_choice import find_workloads


def block(round_index: int, index: int, void: str | None = None) -> Block:
    return Block("w", round_index, index, 0, (), void)


def verdict(decision: Decision, low: float, high: float) -> Verdict:
    interval = Interval(low, 1.0, high, 0.95)
    return Verdict("w", "throughput_tps", "b", "a", decision, "", 1.0, interval, None, None, None, 4, 8, 0)


def test_a_budget_is_filled_with_whole_rounds() -> None:
    assert rounds_within(remaining_s=165.0, round_s=20.0, minimum=5) == 9


def test_a_budget_that_is_too_small_still_gives_the_rounds_that_a_verdict_needs() -> None:
    assert rounds_within(remaining_s=-5.0, round_s=20.0, minimum=5) == 5
    assert minimum_rounds(Design()) == 5
    assert minimum_rounds(Design(stopping=Stopping.DECIDED)) == 6  # looking takes one more, see method.md


def test_a_round_without_any_valid_block_is_lost_and_one_with_some_is_not() -> None:
    blocks = [block(0, 0, "steal"), block(0, 1), block(1, 0, "steal"), block(1, 1, "steal")]
    assert rounds_to_repeat(blocks, ["w"], done=2, wanted=6) == 1


def test_a_workload_whose_round_is_missing_altogether_has_lost_it() -> None:
    # A resumed experiment may have recovered the read-only workload of a round and not the writing one.
    assert rounds_to_repeat([block(0, 0), block(1, 0)], ["w", "writes"], done=2, wanted=6) == 2


def test_a_workload_that_is_always_void_does_not_go_on_for_ever() -> None:
    blocks = [block(i, 0, "saturated") for i in range(40)]
    assert rounds_to_repeat(blocks, ["w"], done=40, wanted=6) == 6


def test_a_machine_is_too_noisy_above_thirty_percent_void_blocks() -> None:
    blocks = [block(i, 0, "steal" if i < 3 else None) for i in range(10)]
    assert not is_too_noisy(blocks, Design())
    assert is_too_noisy([*blocks, block(10, 0, "steal")], Design())


def test_a_disturbance_of_one_pass_does_not_end_an_experiment() -> None:
    two_rounds = [block(r, i, "steal" if i < 5 else None) for r in range(2) for i in range(10)]
    assert not is_too_noisy(two_rounds, Design())
    assert is_too_noisy(
        [*two_rounds, *(block(2, i, "steal" if i < 5 else None) for i in range(10))], Design()
    )


def test_measuring_stops_only_where_nothing_counts_over_three_rounds() -> None:
    void = [block(i % 4, i // 4, "saturated") for i in range(8)]
    assert counts_nothing(void)
    assert not counts_nothing([*void, block(4, 0)])
    assert not counts_nothing(void[:7])
    assert not counts_nothing([block(i % 2, i // 2, "saturated") for i in range(8)])


def test_a_void_trial_counts_in_proportion_and_its_round_is_repeated() -> None:
    arms = tuple(ArmBlock(name, 1, 1.0, {}, void="steal" if name == "b" else None) for name in "abcd")
    partly = [Block("w", r, 0, 0, arms) for r in range(10)]
    assert void_share(partly) == 0.25
    assert rounds_to_repeat(partly, ["w"], done=10, wanted=5) == 5


def test_the_typical_reason_is_of_the_commonest_kind_whatever_its_figures() -> None:
    stolen = ["12.0% was stolen (limit 10%)", "31.5% was stolen (limit 10%)"]
    blocks = [block(r, 0, void) for r, void in enumerate(["11.0% was foreign (limit 10%)", *stolen, None])]
    assert typical_void_reason(blocks) == "12.0% was stolen (limit 10%)"
    assert typical_void_reason([block(0, 0)]) is None


def test_a_fixed_design_never_stops_early() -> None:
    assert not is_finished([verdict(Decision.BETTER, 1.1, 1.2)], Design())


def test_waiting_for_a_decision_ends_when_every_workload_has_one() -> None:
    design = Design(stopping=Stopping.DECIDED)
    assert not is_finished(
        [verdict(Decision.BETTER, 1.1, 1.2), verdict(Decision.INCONCLUSIVE, 0.9, 1.1)], design
    )
    assert is_finished([verdict(Decision.BETTER, 1.1, 1.2), verdict(Decision.EQUIVALENT, 0.99, 1.01)], design)


def test_waiting_for_precision_ends_when_every_interval_is_narrow_enough() -> None:
    design = Design(stopping=Stopping.PRECISION, precision=0.01)
    assert is_finished([verdict(Decision.INCONCLUSIVE, 0.995, 1.005)], design)
    assert not is_finished([verdict(Decision.BETTER, 1.10, 1.20)], design)


@pytest.mark.parametrize(
    "design",
    [Design(stopping=Stopping.DECIDED), Design(stopping=Stopping.PRECISION, precision=0.01)],
    ids=["decided", "precision"],
)
def test_a_cell_that_missed_its_background_rate_is_not_waited_for(design: Design) -> None:
    missed = replace(verdict(Decision.INCONCLUSIVE, 0.5, 1.5), workload="qr1000", interval=None)
    arms = [
        ArmBlock(name, 1, 1.0, {"background_rate_share": share}) for name, share in [("a", 1.0), ("b", 0.9)]
    ]
    blocks = [Block("qr1000", 0, 0, 0, tuple(arms))]
    assert is_finished([missed, verdict(Decision.EQUIVALENT, 0.995, 1.005)], design, blocks)
    assert not is_finished([missed, verdict(Decision.INCONCLUSIVE, 0.9, 1.1)], design, blocks)
    assert not is_finished([missed, verdict(Decision.EQUIVALENT, 0.995, 1.005)], design)


WORKLOADS = tuple(find_workloads(("sysbench-read-only", "sysbench-read-write")).values())
DATA = (WORKLOADS[0].data_set,)


def test_a_round_of_two_arms_takes_as_long_as_in_the_recorded_run() -> None:
    # docs/results/bundles/accelerate-awake.zip: 35.6 … 37.2 s from round to round
    assert time_needed(WORKLOADS, Design(), 2, ()).round_s == pytest.approx(36.5, abs=2)


def test_more_arms_take_whole_squares_of_turns() -> None:
    # Six arms: 36 turns a square. Reading: 144 turns of 50 ms; writing: 36 turns of 500 ms; two blocks each.
    turns_s = 2 * 1.05 * (144 * 0.05 + 36 * 0.5)
    assert time_needed(WORKLOADS, Design(), 6, ()).round_s == pytest.approx(turns_s + 6 * (2 + 2 * 2))


def test_whole_trials_take_each_arm_alone() -> None:
    # Two arms, two workloads: 10 s of trial and 2 s of warm-up each, 2 s for a server, 10 s to switch.
    found = time_needed(WORKLOADS, alternating(Design()), 2, (), switch_s=10.0)
    assert found.round_s == pytest.approx(2 * (2 * 12 + 2 + 10))


def test_what_is_not_loaded_yet_is_waited_for() -> None:
    loaded, not_loaded = (time_needed(WORKLOADS, Design(), 2, data) for data in ((), DATA))
    assert not_loaded.preparation_s - loaded.preparation_s == pytest.approx(DATA[0].size_bytes / 15e6)


@pytest.mark.parametrize(("budget_s", "rounds"), [(600, 14), (60, 1), (10, 0)])
def test_rounds_are_those_that_fit(budget_s: float, rounds: int) -> None:
    found = replace(time_needed(WORKLOADS, Design(), 2, DATA), preparation_s=20.0, round_s=40.0)
    assert found.rounds_within(budget_s) == rounds
    assert found.least_s == 20 + 5 * 40
