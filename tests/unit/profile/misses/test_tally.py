"""Misses added up by structure: they are all of them, whatever is shown."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest

from pgdyno.base.facts import Unknown
from pgdyno.profile.misses.structures import Blocks, Region, Structures
from pgdyno.profile.misses.tally import (
    OTHERS,
    Accesses,
    LruCache,
    SplitCaches,
    Tally,
    by_structure,
    parse_accesses,
    split_caches,
    tally,
)
from pgdyno.profile.records.microarchitecture import StructureMisses
from pgdyno.profile.simulated_caches import Geometry

TRACE = b"I  00001000,4\n L 00010000,8\n L 00020000,8\nI  00001004,4\n S 00010008,8\n L 00030000,8\n"
STRUCTURES = Structures(
    (Region(0x10000, 0x20000, "locks"), Region(0x20000, 0x40000, "pages")), Blocks(0x20000, 0x40000, 0x10000)
)
UNKNOWN_PAGES = partial(STRUCTURES.named, kinds={})
NAMES = {0x1000: "LockAcquire", 0x1004: "_bt_compare"}


def caches() -> SplitCaches:
    return SplitCaches(LruCache(1, 8), LruCache(1, 2), LruCache(1, 8), 64)


@pytest.mark.parametrize("length", [1, 7, 20, 1000])
def test_pieces_may_end_anywhere(length: int) -> None:
    found = tally((TRACE[at : at + length] for at in range(0, len(TRACE), length)), caches())
    assert found.l1d == Counter({(0x10000, 0x1000): 1, (0x20000, 0x1000): 1, (0x30000, 0x1004): 1})
    assert found.l2 == found.l1d
    assert found.instructions == 2


def test_caches_are_filled_by_what_is_not_counted() -> None:
    filled = caches()
    tally([TRACE], filled)
    # In the first cache are 0x10000 and 0x30000 still; 0x20000 is in the second.
    found = tally([b"I  00001000,4\n L 00010000,8\n L 00030000,8\n L 00020000,8\n"], filled)
    assert found.l1d == Counter({(0x20000, 0x1000): 1})
    assert found.l2 == Counter()


def test_structures_are_ranked_pages_by_kind_with_the_functions_that_missed_most() -> None:
    l1d = Counter({(0x10000, 0x1000): 10, (0x20000, 0x1004): 30, (0x20040, 0x1000): 1, (0x30000, 0x1004): 8})
    l2 = Counter({(0x20000, 0x1004): 4})
    structure_of = partial(STRUCTURES.named, kinds={0x20000: "B-tree pages"})
    found = by_structure(Tally(l1d, l2), structure_of, lambda at: NAMES[at], 2)
    assert found == (
        StructureMisses("B-tree pages", 15.5, 2.0, ("_bt_compare",)),
        StructureMisses("locks", 5.0, 0.0, ("LockAcquire",)),
        StructureMisses("pages", 4.0, 0.0, ("_bt_compare",)),  # a page whose kind is not known
    )


def test_rare_ones_are_added_up_and_nothing_is_lost() -> None:
    l1d = Counter({(0x10000, 0x1000): 1000, (0x20000, 0x1004): 3, (0x50000, 0x1004): 2})
    found = by_structure(Tally(l1d), UNKNOWN_PAGES, lambda at: NAMES[at], 10)
    assert [one.structure for one in found] == ["locks", OTHERS]
    assert found[1].l1d == pytest.approx(0.5)
    assert sum(one.l1d for one in found) == pytest.approx(100.5)


def no_name(_: int) -> str:
    return ""


def test_what_is_rare_in_the_first_cache_and_not_in_the_second_is_shown() -> None:
    l1d = Counter({(0x10000, 0x1000): 1000, (0x20000, 0x1004): 3})
    found = by_structure(Tally(l1d, Counter({(0x20000, 0x1004): 3})), UNKNOWN_PAGES, no_name, 1)
    assert [(one.structure, one.l2, one.functions) for one in found] == [("locks", 0, ()), ("pages", 3, ())]


def test_no_misses_have_no_structures() -> None:
    assert by_structure(Tally(), UNKNOWN_PAGES, lambda at: NAMES[at], 1) == ()


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


def accesses(text: str) -> list[tuple[bool, int, int]]:
    found = parse_accesses(text.encode())
    return list(zip(found.is_code.tolist(), found.addresses.tolist(), found.sizes.tolist(), strict=True))


def test_instructions_and_their_data_are_read_in_order() -> None:
    text = "I  04a2a353,6\n L 1ffefff788,8\n S 04b38a18,16\n M 04b2fa88,4\nI  004a3d1f,2\n"
    assert accesses(text) == [
        (True, 0x04A2A353, 6),
        (False, 0x1FFEFFF788, 8),
        (False, 0x04B38A18, 16),
        (False, 0x04B2FA88, 4),
        (True, 0x004A3D1F, 2),
    ]


def test_sizes_have_up_to_three_digits() -> None:
    assert accesses(" L 00d64000,512\n S 00d64000,1\n") == [(False, 0xD64000, 512), (False, 0xD64000, 1)]


def test_valgrinds_own_words_are_no_accesses() -> None:
    text = (
        "==7282== Warning: set address range perms: large range [0x4b94000, 0xd00000)\n"
        "\n"
        "--7282-- WARNING: unhandled syscall: 334\n"
        " L 04b38750\n"
        " X 04b38750,8\n"
        "I  04b38750,3\n"
    )
    assert accesses(text) == [(True, 0x04B38750, 3)]


def test_nothing_has_no_accesses() -> None:
    assert accesses("") == []
    assert accesses("\n") == []
