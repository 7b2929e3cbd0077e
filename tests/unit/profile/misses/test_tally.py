"""Misses added up by structure: they are all of them, whatever is shown."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from pgdyno.profile.misses.lru import LruCache, SplitCaches
from pgdyno.profile.misses.structures import Blocks, Region, Structures
from pgdyno.profile.misses.tally import OTHERS, Tally, by_structure, tally
from pgdyno.profile.records.microarchitecture import StructureMisses

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
