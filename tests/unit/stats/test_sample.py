from __future__ import annotations

import pytest

from pgdyno.stats.sample import Sample


def test_round_means_are_those_of_their_own_blocks() -> None:
    sample = Sample.of([[1.0, 2.0, 3.0], [10.0], [4.0, 6.0]])
    assert sample.round_means.tolist() == [2.0, 10.0, 5.0]
    assert sample.deviations_within.tolist() == [-1.0, 0.0, 1.0, 0.0, -1.0, 1.0]
    assert (sample.rounds, sample.blocks) == (3, 6)


def test_a_round_that_lost_all_its_blocks_does_not_count() -> None:
    assert Sample.of([[0.1], [], [0.2]]).rounds == 2


def test_the_first_rounds_are_what_was_known_then() -> None:
    assert Sample.of([[1.0, 2.0], [3.0], [4.0]]).first_rounds(2).values.tolist() == [1.0, 2.0, 3.0]


def test_a_log_ratio_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="a log-ratio is not finite: inf"):
        Sample.of([[0.1, float("inf")]])
