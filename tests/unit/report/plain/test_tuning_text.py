"""A search in words."""

from __future__ import annotations

import math

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.model.tuning.tuning import Removal, Trial, TrialRound, TrialState, Tuning
from pgdyno.report.plain.tuning_text import removal_line, trial_line, tuning_text

GAIN = math.log(1.25)
WON = Trial(3, {"jit": "off", "work_mem": "64MB"}, None, (TrialRound(GAIN, GAIN, 0.0),) * 2, TrialState.WON)
SPACE = Space(
    (
        Dimension("jit", Layer.APPLICATION, ("off",), "on"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB"), "4MB"),
    )
)


def tuning(**parts: object) -> Tuning:
    return Tuning("20261125-200000-tune", "guided", 1, ("sysbench-read-only",), SPACE, **parts)  # type: ignore[arg-type]


def test_a_trial_says_what_it_brought_and_how_it_ended() -> None:
    assert trial_line(WON) == (
        "trial 3: +25.0\xa0% over the default, the best so far (2 rounds): jit=off, work_mem=64MB"
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


def test_an_attempt_says_what_was_left_out() -> None:
    one = Removal(("jit", "work_mem"), is_kept=True, rounds=3, ratio=(0.998, 0.99, 1.01))
    assert removal_line(one) == "left out: \u22120.20\xa0% without jit, work_mem"


def test_the_answer_is_what_remains_of_the_winner() -> None:
    removal = Removal(("work_mem",), is_kept=True, rounds=2, ratio=(1.0, 0.99, 1.01))
    text = tuning_text(tuning(trials=(WON,), removals=(removal,), answer={"jit": "off"}))
    assert text == (
        "\n"
        "Search 20261125-200000-tune: 1 of 6 configurations tried.\n"
        "The winner, trial 3, had 2 changes. Without 1 of them it is as fast; the answer:\n"
        "  jit = off\n"
    )


def test_a_search_that_found_nothing_says_so() -> None:
    assert tuning_text(tuning()).endswith("None was faster than the configuration as found.\n")


def test_an_answer_that_could_not_be_made_shorter_says_so() -> None:
    text = tuning_text(tuning(trials=(WON,), answer=WON.point))
    assert "had 2 changes. None could be shown in the time to be without effect; the answer:\n" in text
