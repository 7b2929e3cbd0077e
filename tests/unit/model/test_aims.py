"""Aims by their names, and which direction of each is better."""

from __future__ import annotations

import pytest

from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.tuning.aims import Aim, aims_named


def test_aims_are_taken_in_the_order_in_which_they_were_named() -> None:
    assert aims_named(["wal", "throughput"]) == (Aim.WAL, Aim.THROUGHPUT)


def test_throughput_alone_is_a_search_as_ever() -> None:
    assert aims_named(["throughput"]) == ()
    assert aims_named(["memory"]) == (Aim.MEMORY,)


@pytest.mark.parametrize(
    ("names", "message", "hint"),
    [
        (["speed"], 'there is no aim "speed"', "known are: throughput, tail, wal, memory"),
        (["wal", "wal"], 'the aim "wal" is given twice', "all aims count alike: give each of them once"),
    ],
)
def test_mistakes_are_named(names: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        aims_named(names)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_of_all_but_throughput_less_is_better() -> None:
    assert [aim.gain(0.25) for aim in Aim] == [0.25, -0.25, -0.25, -0.25]


def test_all_but_memory_are_measured() -> None:
    assert [aim for aim in Aim if aim.metric not in METRICS] == [Aim.MEMORY]
