"""A load is shared evenly, and turns are long against the words to load hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.design.several_hosts import even_parts, with_long_turns
from pgdyno.model.experiments.experiment import Design


@pytest.mark.parametrize(
    ("whole", "count", "parts"),
    [(4, 1, (4,)), (4, 2, (2, 2)), (5, 2, (3, 2)), (8, 3, (3, 3, 2)), (2, 3, (1, 1, 0))],
)
def test_parts_differ_by_one_at_most(whole: int, count: int, parts: tuple[int, ...]) -> None:
    assert even_parts(whole, count) == parts


def test_turns_stay_as_they_are_where_words_are_fast() -> None:
    assert with_long_turns(Design(), 0.001, "client1") == Design()


def test_turns_have_forty_times_what_words_take() -> None:
    longer = with_long_turns(replace(Design(), writing_slice_s=0.5), 0.004, "client1")
    assert (longer.slice_s, longer.writing_slice_s) == (0.2, 0.5)
    short = with_long_turns(replace(Design(), slice_s=0.02, writing_slice_s=0.02), 0.004, "client1")
    assert (short.slice_s, short.writing_slice_s) == (0.2, 0.2)


def test_a_host_that_is_too_far_away_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        with_long_turns(Design(), 0.1, "client2")
    assert caught.value.message == "client2 is too far away to take turns together with other load hosts"
    assert caught.value.detail == (
        "the round trip takes 100\xa0ms: turns would have to last 4\xa0s, but the limit is 2\xa0s"
    )


def test_whole_trials_are_long_enough_for_it() -> None:
    trials = replace(Design(), slice_s=10.0)
    assert with_long_turns(trials, 0.1, "client2") == trials
