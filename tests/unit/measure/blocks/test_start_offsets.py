"""Turns that load hosts may have begun too far apart do not count."""

from __future__ import annotations

import pytest

from pgdyno.measure.blocks.blocks import void_reason
from pgdyno.measure.blocks.start_offsets import apart_notes, audit_apart, too_far_apart
from pgdyno.model.experiments.experiment import VoidThresholds
from pgdyno.model.experiments.slices import Slice

MS = 1_000_000
LIMITS = VoidThresholds()


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
