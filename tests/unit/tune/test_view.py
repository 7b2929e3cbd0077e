"""A search as text, and on the page of its proof."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.golden.synthetic import experiment
from tests.golden.synthetic_tuning import tuning

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import TUNED, Dimension, Removal, Space, Trial, TrialRound, TrialState, Tuning
from pgdyno.results.page import render_page
from pgdyno.tune.view import (
    SearchView,
    answer_text,
    notes_text,
    proof_text,
    removal_line,
    search_view,
    trial_line,
)

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
OUTCOME, CHANGES = 3, 4


def search(**parts: object) -> Tuning:
    begun = Tuning("20261125-200000-tune", "guided", 1, ("sysbench-read-only",), "embedded 18.6", SPACE)
    return replace(begun, **parts)  # type: ignore[arg-type]


def test_a_trial_says_what_it_brought_and_how_it_ended() -> None:
    assert trial_line(WON) == (
        "trial 3: +25.0\xa0% over the default, the best so far (2 rounds): jit=off, work_mem=64MB"
    )


def test_a_trial_that_was_slower_on_a_workload_says_on_which() -> None:
    slower = replace(WON, state=TrialState.LOST, reason="slower on sysbench-read-write")
    assert "over the default, slower on sysbench-read-write (2 rounds)" in trial_line(slower)
    assert answer_text(search(trials=(slower,))).endswith(
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
    assert answer_text(search(trials=(WON,), removals=(removal,), answer=answer)) == (
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
    assert answer_text(search()).endswith("None was faster than the configuration as found.\n")
    all_removed = answer_text(search(trials=(WON,)))
    assert all_removed.endswith("as fast without any of its changes: no improvement was found.\n")


def test_the_proof_is_said_for_each_workload() -> None:
    of_plan = experiment()
    found = tuple(replace(one, variant=TUNED) for one in of_plan.verdicts)
    said = proof_text(search(notes=("a note",)), replace(of_plan, verdicts=found))
    assert said.startswith("New measurement, against the default: faster on ")
    assert said.endswith("\na note\n")


def test_notes_are_told_without_a_proof_as_well() -> None:
    assert notes_text(search(notes=("a note", "another one"))) == "a note\nanother one\n"
    assert notes_text(search()) == ""


def view(*trials: Trial) -> SearchView:
    found = search_view(replace(tuning(), trials=trials) if trials else tuning())
    assert found is not None
    return found


def test_each_trial_says_what_it_changed_against_the_best_at_its_time() -> None:
    changes = [row[CHANGES] for row in view().table.rows]
    assert changes[0] == "shared_buffers=2GB, work_mem=16MB, vm.swappiness=1"
    assert changes[3] == "plan_cache_mode=force_generic_plan"
    assert changes[7] == (
        "plan_cache_mode=auto, shared_buffers as found, work_mem as found, vm.swappiness as found"
    )


def test_each_trial_says_how_it_ended() -> None:
    outcomes = [row[OUTCOME] for row in view().table.rows]
    assert outcomes == [
        "became the best",
        "slower",
        "no clear difference",
        "became the best",
        "slower on sysbench-read-write",
        "failed: it did not start",
        "refused: the worst case does not fit",
        "slower",
    ]


def test_the_legend_has_the_marks_that_are_there() -> None:
    won = Trial(1, {"jit": "off"}, None, tuning().trials[0].rounds, TrialState.WON)
    assert [words for _, words in view(won).legend] == ["became the best"]
    assert len(view().legend) == 5


def test_the_steps_rise_where_a_trial_became_the_best() -> None:
    curve = view().curve
    assert curve is not None
    line = str(curve.wide).split('<polyline points="')[1].split('"')[0]
    corners = [tuple(map(float, pair.split(","))) for pair in line.split()]
    heights = [y for _, y in corners]
    assert len(corners) == 6  # the default, two for each of two steps, and the right end
    assert heights == sorted(heights, reverse=True)  # upwards is less
    assert len(set(heights)) == 3


def test_what_was_left_out_and_what_was_kept_is_in_a_table() -> None:
    removals = view().removals
    assert removals is not None
    assert [row[:3] for row in removals.rows] == [
        ("vm.swappiness, work_mem", "left out", "−0.20\xa0%"),
        ("shared_buffers", "kept", "−21.0\xa0%"),
        ("plan_cache_mode", "kept", "–"),
    ]


def test_the_page_says_that_trials_prove_nothing() -> None:
    page = render_page(experiment(), tuning=tuning())
    assert "Trials only guide the search" in page
    assert '<a href="#search">' in page


def test_a_page_without_a_search_speaks_of_none() -> None:
    assert 'href="#search"' not in render_page(experiment())
    assert search_view(replace(tuning(), trials=())) is None
