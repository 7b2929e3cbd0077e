"""A search with several aims in words."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic_front import experiment, tuning

from pgdyno.model.tuning.tuning import TrialState
from pgdyno.report.plain.tuning_text import answer_text, proof_text, trial_line

CHOOSE = (
    "None of those left is better than another in everything: choose one by what matters to you. Its own "
    "lines, with those that all have, are its configuration."
)
LIKE_A_SIMPLER_ONE = (
    "Left out: member-3, which has more changes than member-2 and is not told from it in throughput or "
    "WAL per transaction."
)
NB = "\u00a0"


def test_a_trial_says_what_it_brought_in_each_aim() -> None:
    found = tuning().trials
    assert trial_line(found[2]) == (
        f"trial 3: throughput +25.0{NB}%, WAL per transaction \u221245.0{NB}%; "
        "on the front so far (2 rounds): shared_buffers=2048MB, work_mem=16MB, wal_compression=lz4"
    )
    assert "; trial 2 is better (2 rounds): " in trial_line(found[0])
    undecided = replace(found[2], state=TrialState.CLOSE)
    assert "; not decided when the time was over (2 rounds): " in trial_line(undecided)
    assert trial_line(found[5]) == "trial 6: failed: it did not start"


def test_members_are_listed_by_what_sets_them_apart() -> None:
    assert answer_text(tuning()) == (
        "Search 20261121-090000-tune: 5 of 4 configurations tried.\n"
        "On the front of throughput and WAL per transaction: 4 configurations.\n"
        "All have:\n"
        "  # postgresql.conf\n"
        "  shared_buffers = 2048MB\n"
        "  work_mem = 16MB\n"
        "member-1 (trial 2) has besides:\n"
        "  # postgresql.conf\n"
        "  plan_cache_mode = force_generic_plan  # suits this workload's statements, may harm others: set it "
        "for this application alone\n"
        "member-2 (trial 3) has besides:\n"
        "  # postgresql.conf\n"
        "  wal_compression = lz4\n"
        "member-3 (trial 4) has besides:\n"
        "  # postgresql.conf\n"
        "  wal_compression = lz4\n"
        "  jit = off\n"
        "  io_workers = 8\n"
        "member-4 (trial 5) has besides:\n"
        "  # postgresql.conf\n"
        "  wal_compression = pglz\n"
        "plan (trial 1) has besides:\n"
        "  nothing else\n"
    )


def test_a_single_member_is_listed_whole_and_one_with_nothing_of_its_own_says_so() -> None:
    found = tuning()
    alone = answer_text(replace(found, members=found.members[:1], trials=found.trials[1:]))
    assert "member-1 (trial 2) has:\n  # postgresql.conf\n  shared_buffers = 2048MB\n" in alone
    planned = replace(found.members[0], point=found.space.plan)
    both = answer_text(replace(found, members=(planned, found.members[1])))
    assert "member-1 (trial 2) has besides:\n  nothing else\n" in both


def test_no_member_is_an_answer() -> None:
    assert answer_text(replace(tuning(), members=())).endswith(
        "None was better than the configuration as found in throughput or WAL per transaction.\n"
    )


def test_the_proof_is_a_table_of_effects_and_says_what_is_left_out_and_why() -> None:
    lines = proof_text(replace(tuning(), notes=("a note",)), experiment()).splitlines()
    assert lines[0] == f"Measured afresh, against the default, with intervals of 95{NB}% each by itself:"
    heads, *rows = lines[1:7]
    assert heads.split() == ["throughput", "WAL", "per", "transaction"]
    assert [row.split()[0] for row in rows] == ["member-1", "member-2", "member-3", "member-4", "plan"]
    assert [row.endswith("left out") for row in rows] == [False, False, True, True, True]
    assert "(" in rows[0]
    assert lines[7:] == [
        LIKE_A_SIMPLER_ONE,
        "Left out: member-4, as member-2 is better in at least one of them and shown to be worse in none.",
        "Left out: plan, as member-1 is better in at least one of them and shown to be worse in none.",
        CHOOSE,
        "a note",
    ]


def test_too_few_rounds_are_said() -> None:
    few = replace(experiment(), blocks=experiment().blocks[:1])
    assert (
        proof_text(tuning(), few)
        == "The front is not known: too few rounds count, or more transactions fail on one of its servers.\n"
    )


def test_one_that_is_left_is_named_and_none_as_well() -> None:
    only = replace(tuning(), members=tuning().members[1:3])
    arms = tuple(one for one in experiment().variants if one.name in {"default", "member-2", "member-3"})
    proof = replace(experiment(), variants=arms)
    assert "\nTake member-2: " in proof_text(only, proof)
    alike = [
        tuple(
            replace(arm, values=proof.blocks[(block.round + place) % len(proof.blocks)].arms[0].values)
            for place, arm in enumerate(block.arms)
        )
        for block in proof.blocks
    ]
    like = tuple(replace(block, arms=arms) for block, arms in zip(proof.blocks, alike, strict=True))
    assert "None is left: keep the configuration as found." in proof_text(only, replace(proof, blocks=like))
