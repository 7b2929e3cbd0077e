"""The places of code that are executed, with counts that were made up and sums by hand."""

from __future__ import annotations

import pytest

from pgdyno.host.processes.elf import CodeSegment
from pgdyno.profile.reading.layouts import ExecutedCode, HowKnown, fewest, hot_bytes, text_layout
from pgdyno.profile.records.microarchitecture import Elsewhere, HotCode, PageHeat, TextLayout

# Two parts of a program: three pages from 0x1000 on, and one in another page of 2 MB.
SEGMENTS = (CodeSegment(0x1000, 0x1000, 0x2800), CodeSegment(0x400000, 0x4000, 0x100))
COUNTED = HowKnown("made up", "instructions", is_complete=True, is_simulated=True)
# 0x1000 and 0x1003 in one line of 64 B, 0x1040 in the next; 0x2000 in the next page; one in the other part.
COUNTS = {0x1000: 50, 0x1003: 20, 0x1040: 20, 0x2000: 9, 0x400010: 1}
NAMES = {0x1000: "hot", 0x1003: "hot", 0x1040: "warm", 0x2000: "cool", 0x400010: "cold"}


def layout(counts: dict[int, int], seen: HowKnown = COUNTED, **elsewhere: int) -> TextLayout | None:
    return text_layout("postgres", SEGMENTS, ExecutedCode(counts, NAMES, elsewhere), seen)


def test_pages_have_their_share_and_the_function_with_most_of_it() -> None:
    found = layout(COUNTS)
    assert found is not None
    assert found.pages == 4
    assert found.counted == 100
    assert found.heat == (PageHeat(0, 0.9, "hot"), PageHeat(1, 0.09, "cool"), PageHeat(3, 0.01, "cold"))


def test_the_fewest_places_that_hold_most_of_what_is_executed() -> None:
    found = layout(COUNTS)
    assert found is not None
    # 90: 0x1000 (3 bytes to the next), 0x1003 and 0x1040 (4 each: what follows is too far away to be theirs).
    assert found.coverage == (HotCode(0.9, 11, 2, 1, 1), HotCode(0.99, 15, 3, 2, 1))


def test_samples_tell_no_bytes() -> None:
    found = layout(COUNTS, HowKnown("samples", "samples", is_complete=False, is_simulated=False))
    assert found is not None
    assert [one.code_bytes for one in found.coverage] == [None, None]
    assert [one.pages for one in found.coverage] == [1, 2]


def test_code_outside_the_program_is_named_with_its_share() -> None:
    found = layout({0x1000: 60}, libc=30, jit=10, rare=0)
    assert found is not None
    assert found.elsewhere == (Elsewhere("libc", 0.3), Elsewhere("jit", 0.1))
    assert found.counted == 60


@pytest.mark.parametrize("counts", [{}, {0x1000: 0, 0x1003: -2}, {0x9000: 5}, {0x3800: 5}])
def test_a_program_in_which_nothing_was_executed_has_no_layout(counts: dict[int, int]) -> None:
    assert layout(counts, libc=10) is None


def test_a_place_in_the_file_has_an_address() -> None:
    assert SEGMENTS[1].address_of(0x4010) == 0x400010
    assert SEGMENTS[1].address_of(0x4100) is None
    assert list(SEGMENTS[0].pages) == [1, 2, 3]


@pytest.mark.parametrize(("share", "number"), [(0.5, 1), (0.51, 2), (0.9, 3), (1.0, 4)])
def test_the_largest_counts_come_first(share: float, number: int) -> None:
    assert fewest([5, 50, 20, 25], share) == number


def test_bytes_that_lie_between_are_not_hot() -> None:
    assert hot_bytes({0: 5, 15: 5, 100: 5}, 1.0) == 15 + 4 + 4
