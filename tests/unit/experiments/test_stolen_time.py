"""What counts on a machine whose hypervisor takes time throughout."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.experiments.blocks import join_trials, void_reason
from pgdyno.experiments.stolen_time import lift_limit
from pgdyno.model.experiment import ArmBlock, Block, Design, Experiment, VoidThresholds
from pgdyno.model.variant import Variant

LIMITS = VoidThresholds()
CALM, STOLEN = {"steal_share": 0.02}, {"steal_share": 0.40}
CROWDED = {"steal_share": 0.40, "foreign_cpu_share": 0.50}


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
    assert lift_limit(measured) == measured
    assert measured.blocks[0].void == "40.0% of the CPU time was stolen by the hypervisor (limit 10%)"


def test_where_many_are_none_is_left_out_and_a_note_says_so() -> None:
    measured = experiment(*(pair(i, STOLEN, STOLEN if i < 4 else CALM) for i in range(8)))
    lifted = lift_limit(measured)
    assert [block.void_reasons for block in lifted.blocks] == [()] * 8
    assert lifted.design.thresholds == replace(LIMITS, steal_share=1.0)
    (note,) = lifted.notes
    assert note == (
        "the hypervisor took more than 10% of the CPU time from 12 of 16 trials (half of them lost more than "
        "40%, one 40%): none is left out for that, so the intervals are wider; repeat it when less else runs "
        "on the physical machine"
    )


def test_without_its_baselines_trial_a_block_is_lost_and_that_counts_as_much() -> None:
    lifted = lift_limit(experiment(*(pair(i, STOLEN if i < 3 else CALM, CALM) for i in range(8))))
    assert [block.void_reasons for block in lifted.blocks] == [()] * 8
    assert "from 3 of 16 trials" in lifted.notes[0]


def test_what_arms_share_is_one_trial() -> None:
    lifted = lift_limit(experiment(*(duet(i, STOLEN if i < 3 else CALM) for i in range(8))))
    assert [block.void for block in lifted.blocks] == [None] * 8
    assert "from 3 of 8 trials" in lifted.notes[0]


def test_another_reason_still_counts() -> None:
    measured = experiment(*(pair(i, CROWDED if i == 0 else STOLEN, STOLEN) for i in range(8)))
    first, *others = lift_limit(measured).blocks
    assert first.void == "50.0% of the CPU time went to processes that are not ours (limit 10%)"
    assert [block.void for block in others] == [None] * 7


def test_a_reason_that_is_not_the_audits_is_kept() -> None:
    blocks = [replace(duet(i, STOLEN), void="checkpoints differ") for i in range(8)]
    assert [block.void for block in lift_limit(experiment(*blocks)).blocks] == ["checkpoints differ"] * 8


def test_a_disturbance_within_one_or_two_rounds_may_end() -> None:
    two_rounds = experiment(*(pair(i % 2, STOLEN, STOLEN) for i in range(8)))
    assert lift_limit(two_rounds) == two_rounds


def test_blocks_without_an_audit_are_left_as_they_are() -> None:
    blocks = [Block("w", i, 0, 0, (), "crashed") for i in range(8)]
    assert lift_limit(experiment(*blocks)).blocks == tuple(blocks)


def test_a_limit_is_lifted_once() -> None:
    lifted = lift_limit(experiment(*(pair(i, STOLEN, STOLEN) for i in range(8))))
    assert lift_limit(lifted) == lifted
