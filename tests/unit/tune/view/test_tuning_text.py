"""A search in words."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.golden.synthetic import experiment

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.model.tuning.tuning import TUNED, Removal, Trial, TrialRound, TrialState, Tuning
from pgdyno.tune.view.tuning_text import answer_text, notes_text, proof_text, removal_line, trial_line

GAIN = math.log(1.25)
WON = Trial(3, {"jit": "off", "work_mem": "64MB"}, None, (TrialRound(GAIN, GAIN, 0.0),) * 2, TrialState.WON)
SPACE = Space(
    (
        Dimension("build", Layer.COMPILER, ("built-1",), "the wheel's"),
        Dimension("plan_cache_mode", Layer.APPLICATION, ("force_generic_plan",), "auto"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB"), "4MB"),
    ),
    kept={"max_wal_size": "16GB"},
)


def tuning(**parts: object) -> Tuning:
    begun = Tuning("20261125-200000-tune", "guided", 1, ("sysbench-read-only",), "embedded 18.6", SPACE)
    return replace(begun, **parts)  # type: ignore[arg-type]


def test_a_trial_says_what_it_brought_and_how_it_ended() -> None:
    assert trial_line(WON) == (
        "trial 3: +25.0\xa0% over the default, the best so far (2 rounds): jit=off, work_mem=64MB"
    )


def test_a_trial_that_was_slower_on_a_workload_says_on_which() -> None:
    slower = replace(WON, state=TrialState.LOST, reason="slower on sysbench-read-write")
    assert "over the default, slower on sysbench-read-write (2 rounds)" in trial_line(slower)
    assert answer_text(tuning(trials=(slower,))).endswith(
        "None was faster than the configuration as found without being slower on a workload.\n"
    )


def test_many_changes_are_counted() -> None:
    many = Trial(1, {f"setting{n}": "1" for n in range(9)}, None, WON.rounds[:1], TrialState.LOST)
    assert trial_line(many).endswith(
        "slower than the best (1 round): setting0=1, setting1=1, setting2=1, setting3=1 and 5 more"
    )


def test_a_server_that_did_not_start_has_its_reason() -> None:
    assert trial_line(Trial(2, {"jit": "off"}, None, (), TrialState.FAILED, "no memory")) == (
        "trial 2: failed: no memory"
    )


def test_a_server_that_died_in_a_later_round_has_no_gain() -> None:
    died = replace(WON, state=TrialState.FAILED, reason="the server crashed")
    assert trial_line(died) == "trial 3: failed: the server crashed"


def test_an_attempt_says_what_was_left_out() -> None:
    one = Removal(("jit", "work_mem"), is_kept=True, rounds=3, ratio=(0.998, 0.99, 1.01))
    assert removal_line(one) == "left out: \u22120.20\xa0% without jit, work_mem"
    refused = Removal(("work_mem",), is_kept=False, rounds=0, ratio=None)
    assert removal_line(refused) == "kept: a server does not run, or must not, without work_mem"


def test_the_answer_is_grouped_by_what_is_changed() -> None:
    removal = Removal(("work_mem",), is_kept=True, rounds=2, ratio=(1.0, 0.99, 1.01))
    answer = {
        "max_wal_size": "16GB",
        "build": "built-1",
        "process.scheduling_policy": "batch",
        "plan_cache_mode": "force_generic_plan",
    }
    assert answer_text(tuning(trials=(WON,), removals=(removal,), answer=answer)) == (
        "Search 20261125-200000-tune: 1 of 12 configurations tried.\n"
        "The fastest, trial 3, had 2 changes; 1 left out, because it is as fast without. The answer:\n"
        "  # postgresql.conf\n"
        "  max_wal_size = 16GB  # planned; a search is too short to evaluate it\n"
        "  plan_cache_mode = force_generic_plan  # suits this workload's statements, may harm others: set it "
        "for this application alone\n"
        "  # programs: pgdyno switch --help explains how to move a server to a build\n"
        "  build = built-1\n"
        "  # machine and start\n"
        "  process.scheduling_policy = batch\n"
    )


def test_a_search_that_found_nothing_says_so() -> None:
    assert answer_text(tuning()).endswith("None was faster than the configuration as found.\n")
    all_removed = answer_text(tuning(trials=(WON,)))
    assert all_removed.endswith("as fast without any of its changes: no improvement was found.\n")


def test_the_proof_is_said_for_each_workload() -> None:
    of_plan = experiment()
    found = tuple(replace(one, variant=TUNED) for one in of_plan.verdicts)
    said = proof_text(tuning(notes=("a note",)), replace(of_plan, verdicts=found))
    assert said.startswith("New measurement, against the default: faster on ")
    assert said.endswith("\na note\n")


def test_notes_are_told_without_a_proof_as_well() -> None:
    assert notes_text(tuning(notes=("a note", "another one"))) == "a note\nanother one\n"
    assert notes_text(tuning()) == ""
