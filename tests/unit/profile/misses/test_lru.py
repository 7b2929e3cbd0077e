"""Caches on sequences whose misses are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.base.facts import Unknown
from pgdyno.profile.misses.lru import LruCache, SplitCaches, split_caches
from pgdyno.profile.misses.traces import Accesses, parse_accesses
from pgdyno.profile.simulated_caches import Geometry

A, B, C, D = 0, 2, 4, 6  # lines of the first of two sets
ODD = 1  # a line of the second


def misses(cache: LruCache, *lines: int) -> list[int]:
    return [int(place) for place in cache.take(np.array(lines, dtype=np.int64))]


def test_the_line_that_was_not_used_for_longest_goes() -> None:
    # Two ways: A, B are new; A is there; C takes B's place; A is there; B takes C's place.
    assert misses(LruCache(1, 2), 10, 11, 10, 12, 10, 11) == [0, 1, 3, 5]


def test_one_line_more_than_ways_in_a_circle_misses_always() -> None:
    assert misses(LruCache(1, 3), *([1, 2, 3, 4] * 3)) == list(range(12))
    assert misses(LruCache(1, 4), *([1, 2, 3, 4] * 3)) == [0, 1, 2, 3]


def test_sets_do_not_take_each_others_lines() -> None:
    # C and D push A and B out of the first set; the line of the second one stays.
    assert misses(LruCache(2, 2), ODD, A, B, C, D, ODD, A) == [0, 1, 2, 3, 4, 6]


def test_a_cache_keeps_its_lines_from_piece_to_piece() -> None:
    cache = LruCache(1, 2)
    assert misses(cache, 1, 2) == [0, 1]
    assert misses(cache, 2, 1, 3) == [2]
    assert misses(cache, 2, 1) == [0, 1]  # 3 had taken the place of 2, and 2 takes that of 1
    assert misses(cache) == []


def small() -> SplitCaches:
    """Return caches of one set: two lines of instructions, two of data, three of both behind them."""
    return SplitCaches(LruCache(1, 2), LruCache(1, 2), LruCache(1, 3), 64)


def trace(*lines: str) -> Accesses:
    return parse_accesses("".join(f"{line}\n" for line in lines).encode())


def test_instructions_take_places_of_data_in_the_second_cache_alone() -> None:
    caches = small()
    caches.take(trace("I  00001000,4", " L 00010000,8", "I  00001040,4", "I  00001080,4"))
    # Data's line is in its first cache still, and the oldest of the three in the second.
    assert caches.take(trace("I  00001080,4", " L 00010008,8")).lines.tolist() == []
    # The lines at 0x20000 and 0x30000 push 0x10000 out of both: it misses twice.
    found = caches.take(trace("I  00001080,4", " S 00020000,8", " S 00030000,8", " L 00010000,8"))
    assert found.lines.tolist() == [0x20000 // 64, 0x30000 // 64, 0x10000 // 64]
    assert found.in_neither.tolist() == [0, 1, 2]


def test_what_the_second_cache_has_is_missed_once() -> None:
    caches = small()
    caches.take(trace(" L 00010000,8", " L 00020000,8", " L 00030000,8"))
    found = caches.take(trace(" L 00010000,8"))
    assert found.lines.tolist() == [0x10000 // 64]
    assert found.in_neither.tolist() == []


def test_an_access_over_the_end_of_a_line_uses_both() -> None:
    found = small().take(trace("I  00001000,4", " L 0001003c,8", " L 00010040,4"))
    assert found.lines.tolist() == [0x10000 // 64, 0x10040 // 64]
    assert found.instructions.tolist() == [0x1000, 0x1000]


def test_misses_are_those_of_the_instruction_before_them() -> None:
    caches = small()
    found = caches.take(trace("I  00001000,4", " L 00010000,8", "I  00001004,4", " S 00020000,8"))
    assert found.instructions.tolist() == [0x1000, 0x1004]
    # A piece may begin with data: its instruction ended the piece before.
    assert caches.take(trace(" L 00030000,8")).instructions.tolist() == [0x1004]


def test_geometries_make_caches() -> None:
    known = (Geometry("L1i", 64, 8, 64), Geometry("L1d", 64, 12, 64), Geometry("L2", 2048, 16, 64))
    found = split_caches(known)
    assert isinstance(found, SplitCaches)
    assert (found.code.ways, found.data.ways, found.second.sets, found.line_bytes) == (8, 12, 2048, 64)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ((Geometry("L1d", 64, 12, 64),), "does not report"),
        (
            (Geometry("L1i", 64, 8, 64), Geometry("L1d", 1, 512, 64), Geometry("L2", 2048, 16, 64)),
            "does not report",
        ),
        (
            (Geometry("L1i", 64, 8, 64), Geometry("L1d", 64, 12, 64), Geometry("L2", 2048, 16, 128)),
            "different line sizes",
        ),
    ],
)
def test_caches_that_cannot_be_simulated_are_said(known: tuple[Geometry, ...], words: str) -> None:
    found = split_caches(known)
    assert isinstance(found, Unknown)
    assert words in found.reason
