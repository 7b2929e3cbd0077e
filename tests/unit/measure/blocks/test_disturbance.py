"""What is left out where others take the CPUs now and then, and what counts where they always do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.measure.blocks.blocks import join_trials, void_reason
from pgdyno.measure.blocks.disturbance import (
    apart_notes,
    audit_apart,
    audit_windows,
    judge_again,
    left_out,
    raised,
    too_far_apart,
    with_disturbance_notes,
)
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment, VoidThresholds
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.variants.variant import Variant

LIMITS = VoidThresholds()
CALM, STOLEN = {"steal_share": 0.02}, {"steal_share": 0.40}
CROWDED = {"steal_share": 0.02, "foreign_cpu_share": 0.50}
shares = st.floats(0, 1)


def slices(*stolen: float | None, foreign: float = 0.0) -> list[Slice]:
    """Return windows of two slices each, the second of which tells what was stolen; None: it does not."""
    return [
        Slice(arm, 0, 1, (), None, *((share, foreign) if arm and share is not None else ()))
        for share in stolen
        for arm in (0, 1)
    ]


def test_a_window_above_the_limit_is_left_out_and_nothing_else() -> None:
    calm, disturbed = slices(0.0, 0.01, 0.02), slices(0.0, 0.50, 0.02)
    assert left_out([calm, disturbed], LIMITS) == [frozenset(), frozenset({2, 3})]
    crowded = [*slices(0.0, 0.0), *slices(0.0, foreign=0.2)]
    assert left_out([crowded], LIMITS) == [frozenset({4, 5})]


def test_one_busy_second_of_six_costs_a_sixth_and_the_block_counts() -> None:
    out = left_out([slices(0.0, 0.0, 0.9, 0.0, 0.0, 0.0)], LIMITS)[0]
    assert out == {4, 5}
    audit = audit_windows(slices(0.0, 0.0, 0.9, 0.0, 0.0, 0.0), out)
    assert audit == {"steal_share": 0.0, "foreign_cpu_share": 0.0, "left_out_share": pytest.approx(1 / 6)}


def test_where_less_than_half_would_be_left_the_block_is_judged_as_a_whole() -> None:
    # The round's median is 1 %, its limit 10 %.
    blocks = [slices(0.01, 0.01, 0.01, 0.01, 0.01), slices(0.5, 0.5, 0.5, 0.0)]
    assert left_out(blocks, LIMITS) == [frozenset(), frozenset()]
    audit = audit_windows(blocks[1], frozenset())
    assert audit["steal_share"] == pytest.approx(0.375)
    assert (
        void_reason(audit, LIMITS) == "37.5\xa0% of the CPU time was stolen by the hypervisor (limit 10\xa0%)"
    )


def test_half_of_a_block_is_enough() -> None:
    assert left_out([slices(0.0, 0.0, 0.0), slices(0.5, 0.0)], LIMITS)[1] == {0, 1}


def test_what_is_taken_throughout_is_left_out_nowhere() -> None:
    assert left_out([slices(0.30, 0.25, 0.35), slices(0.55, 0.30, 0.28)], LIMITS) == [frozenset()] * 2
    assert left_out([slices(0.30, 0.30, 0.65)], LIMITS) == [frozenset({4, 5})]  # more than twice the median


def test_the_limit_is_the_threshold_or_twice_the_median() -> None:
    audits = [{"steal_share": share} for share in (0.0, 0.3, 0.8)]
    assert raised(LIMITS, audits) == replace(LIMITS, steal_share=0.6)
    assert raised(LIMITS, audits[:1]) == LIMITS
    assert raised(LIMITS, []) == LIMITS


def test_slices_that_nobody_has_watched_count() -> None:
    assert left_out([slices(None, None)], LIMITS) == [frozenset()]
    assert audit_windows(slices(None, None), frozenset()) == {}
    cut_short = slices(0.0, 0.0, 0.5, None)
    assert left_out([cut_short], LIMITS) == [frozenset({4, 5})]
    assert audit_windows(cut_short, frozenset({4, 5}))["left_out_share"] == 0.25


@given(st.lists(st.lists(shares, min_size=1, max_size=6), min_size=1, max_size=4))
def test_at_least_half_of_each_block_is_left_and_every_arm_loses_the_same(stolen: list[list[float]]) -> None:
    blocks = [slices(*of_block) for of_block in stolen]
    for block, out in zip(blocks, left_out(blocks, LIMITS), strict=True):
        lost = [block[position].arm for position in out]
        assert lost.count(0) == lost.count(1)
        assert 2 * len(out) <= len(block)


def trial(variant: str, round_index: int, audit: dict[str, float]) -> Block:
    arm = ArmBlock(variant, 1, 1.0, {})
    return Block("w", round_index, 0, 0, (arm,), void_reason(audit, LIMITS), audit)


def pair(round_index: int, a: dict[str, float], b: dict[str, float]) -> Block:
    return join_trials([trial("a", round_index, a), trial("b", round_index, b)])


def duet(round_index: int, audit: dict[str, float]) -> Block:
    arms = (ArmBlock("a", 1, 1.0, {}), ArmBlock("b", 1, 1.0, {}))
    return Block("w", round_index, 0, 0, arms, void_reason(audit, LIMITS), audit)


def experiment(*blocks: Block) -> Experiment:
    return Experiment(
        id="x",
        name="x",
        question="",
        created="",
        pgdyno_version="",
        design=Design(),
        variants=(Variant("a"), Variant("b")),
        baseline="a",
        workloads=("w",),
        reset_policies={},
        blocks=blocks,
    )


def test_where_few_trials_are_disturbed_they_stay_left_out() -> None:
    measured = experiment(*(pair(i, STOLEN if i < 2 else CALM, CALM) for i in range(8)))
    assert judge_again(measured) == measured
    assert with_disturbance_notes(measured) == measured
    assert measured.blocks[0].void == "40.0\xa0% of the CPU time was stolen by the hypervisor (limit 10\xa0%)"


def test_where_most_are_they_count_and_a_note_says_so() -> None:
    measured = experiment(*(pair(i, STOLEN, STOLEN if i < 4 else CALM) for i in range(8)))
    judged = with_disturbance_notes(judge_again(measured))
    assert [block.void_reasons for block in judged.blocks] == [()] * 8
    assert judged.design == measured.design
    (note,) = judged.notes
    assert note == (
        "machine disturbed: the hypervisor took more than 10\xa0% of the CPU time in 12 of 16 trials "
        "that count "
        "(up to 40\xa0%; median of the 16: 40\xa0%). They count because that is at most twice the "
        "usual here, so the intervals are wider; repeat it when the physical machine is less busy"
    )


def test_other_processes_are_judged_alike() -> None:
    judged = with_disturbance_notes(judge_again(experiment(*(duet(i, CROWDED) for i in range(8)))))
    assert [block.void for block in judged.blocks] == [None] * 8
    assert judged.notes[0].startswith(
        "machine disturbed: other processes took more than 10\xa0% of the CPU time in 8 of 8 trials"
    )
    assert judged.notes[0].endswith("repeat it when the machine is less busy")


def test_each_workload_has_its_own_usual_share() -> None:
    other = [replace(duet(i, STOLEN), workload="other") for i in range(3)]
    calm = [duet(i, STOLEN if i == 0 else CALM) for i in range(5)]
    judged = judge_again(experiment(*calm, *other))
    assert [block.void is None for block in judged.blocks] == [False, *[True] * 7]


def test_what_looked_unusual_at_first_counts_when_it_turns_out_to_be_usual() -> None:
    begun = judge_again(experiment(duet(0, STOLEN), *(duet(i, CALM) for i in range(1, 4))))
    assert begun.blocks[0].void is not None
    gone_on = replace(begun, blocks=(*begun.blocks, *(duet(i, STOLEN) for i in range(4, 9))))
    assert [block.void for block in judge_again(gone_on).blocks] == [None] * 9


def test_what_counted_at_first_is_left_out_when_the_rest_is_calm() -> None:
    begun = judge_again(experiment(duet(0, STOLEN)))
    assert begun.blocks[0].void is None
    gone_on = replace(begun, blocks=(*begun.blocks, *(duet(i, CALM) for i in range(1, 4))))
    assert judge_again(gone_on).blocks[0].void is not None


def test_a_reason_that_is_not_the_audits_is_kept() -> None:
    blocks = [replace(duet(i, STOLEN), void="checkpoints differ") for i in range(8)]
    assert [block.void for block in judge_again(experiment(*blocks)).blocks] == ["checkpoints differ"] * 8


def test_another_reason_of_the_audit_stays() -> None:
    late = {**STOLEN, "schedule_lag_share": 0.5}
    judged = judge_again(experiment(*(duet(i, late) for i in range(8))))
    assert {block.void for block in judged.blocks} == {
        "50.0\xa0% longer than planned were the slices in all (limit 20\xa0%)"
    }
    assert with_disturbance_notes(judged).notes == ()


def test_blocks_without_an_audit_are_left_as_they_are() -> None:
    blocks = [Block("w", i, 0, 0, (), "crashed") for i in range(8)]
    assert judge_again(experiment(*blocks)).blocks == tuple(blocks)


def test_what_is_left_out_of_blocks_is_told_once() -> None:
    some = [replace(duet(i, {**CALM, "left_out_share": 0.25 if i < 2 else 0.0})) for i in range(5)]
    noted = with_disturbance_notes(replace(experiment(*some), notes=("earlier",)))
    earlier, told = noted.notes
    assert earlier == "earlier"
    assert told == (
        "parts of blocks are left out: 10.0\xa0% of the measured time, in 2 of 5 blocks. There the "
        "hypervisor or "
        "other processes took more of the CPUs than usual; each variant lost the same part"
    )
    assert with_disturbance_notes(noted) == noted  # an experiment that is continued has been concluded before


MS = 1_000_000


def turns(*apart_ms: float) -> list[Slice]:
    """Turns of 100 ms, of two arms one after the other."""
    return [
        Slice(number % 2, number * 100 * MS, (number + 1) * 100 * MS, (0, 0), apart_ns=int(apart * MS))
        for number, apart in enumerate(apart_ms)
    ]


def test_load_from_one_host_has_nothing_to_be_apart() -> None:
    slices = [Slice(0, 0, 100 * MS, (0,))]
    assert (audit_apart(slices), too_far_apart(slices, LIMITS)) == ({}, frozenset())
    assert list(apart_notes([{}])) == []


def test_a_turn_counts_up_to_a_twentieth_of_it() -> None:
    slices = turns(5, 1, 5.1, 2, 1, 1, 1, 1, 1, 1, 1, 1)
    assert too_far_apart(slices, LIMITS) == {2}
    assert audit_apart(slices) == {"apart_share": 1 / 6, "largest_apart_share": pytest.approx(0.05)}


def test_a_block_is_void_that_would_lose_too_many_turns_of_one_arm() -> None:
    slices = turns(1, 1, 200, 1, 200, 1, 1, 1)  # two of four of the first arm
    assert too_far_apart(slices, LIMITS) == frozenset()
    assert void_reason(audit_apart(slices), LIMITS) == (
        "50.0\xa0% of a variant's turns may have begun too far apart on the load hosts (limit 20\xa0%)"
    )


def test_the_note_has_the_largest_that_counts() -> None:
    audits = [audit_apart(turns(1, 2)), audit_apart(turns(3.5, *[1] * 8, 99, *[1] * 8)), {}]
    (note,) = apart_notes(audits)
    assert note == (
        "several load hosts: within a turn that counts, their start times differ by at most 3.5\xa0% of it, "
        "by message latency; turns with more than 5\xa0% do not count (1 of 2 trials have such turns)"
    )
