"""Stacks as folded text and as a flame graph."""

from __future__ import annotations

from pgdyno.profile.records.profile_record import StackCount
from pgdyno.profile.view.profile_page import Flame, flames, folded

STACKS = (
    StackCount(("main", "run"), 10),
    StackCount(("main", "run", "plan"), 30),
    StackCount(("main", "run", "sort; rm -rf", "copy\x1b[31m"), 60),
)


def test_functions_lie_below_their_callers_and_beside_each_other() -> None:
    assert flames(STACKS, 1) == (
        Flame("main", 0, 100, 0),
        Flame("run", 0, 100, 1),
        Flame("plan", 10, 30, 2),
        Flame("sort; rm -rf", 40, 60, 2),
        Flame("copy\x1b[31m", 40, 60, 3),
    )


def test_functions_of_few_samples_are_left_out_with_their_callees() -> None:
    assert [one.function for one in flames(STACKS, 31)] == ["main", "run", "sort; rm -rf", "copy\x1b[31m"]


def test_a_deep_stack_is_no_trouble() -> None:
    assert flames((StackCount(tuple("abcd" * 128), 5),), 1)[-1] == Flame("d", 0, 5, 511)


def test_folded_stacks_have_one_line_each_whatever_functions_are_called() -> None:
    lines = [*folded((*STACKS, StackCount((), 2)))]
    assert lines[:2] == ["main;run 10", "main;run;plan 30"]
    assert lines[2].startswith("main;run;sort:_rm_-rf;copy")
    assert lines[2].endswith(" 60")
    assert "\x1b" not in lines[2]
    assert lines[3] == "? 2"
