"""Two sessions in turns, on traces whose misses are worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from pgdyno.model.profiles.data_misses import MissesInTurns
from pgdyno.model.profiles.process_memory import MemoryMapping
from pgdyno.profiling.misses.lru import LruCache, SplitCaches
from pgdyno.profiling.misses.session_turns import (
    OtherMemory,
    TallyInTurns,
    TurnPart,
    compared,
    other_memory,
    parts_of,
    tally_in_turns,
)
from pgdyno.profiling.misses.tally import OTHERS, Tally
from pgdyno.profiling.misses.traces import Accesses

ASKS = 0x1000
ASK = b"I  00001000,4\n"
FLUSHES = 0x1800
FLUSH = b"I  00001800,4\n"
WAITS = (ASKS, FLUSHES)
CODE = MemoryMapping(0x1000, 0x2000, is_writable=False, is_shared=False, path="/bin/postgres")
SHARED = MemoryMapping(0x10000, 0x20000, is_writable=True, is_shared=True, path="/dev/zero")
HEAP = MemoryMapping(0x40000, 0x50000, is_writable=True, is_shared=False)
OTHER_LIBRARY = MemoryMapping(0x60000, 0x61000, is_writable=False, is_shared=False, path="/lib/a.so")
VSYSCALL = MemoryMapping(
    0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, is_writable=False, is_shared=False, path="[vsyscall]"
)
MAPPINGS = (CODE, SHARED, HEAP, VSYSCALL)
NOTHING_IN_COMMON = other_memory((), ())


def caches() -> SplitCaches:
    """Return caches of one set: four lines of instructions, three of data, eight of both behind them."""
    return SplitCaches(LruCache(1, 4), LruCache(1, 3), LruCache(1, 8), 64)


def load(address: int) -> bytes:
    return f" L {address:08x},8\n".encode()


def parts(*lines: bytes) -> Iterator[TurnPart]:
    return parts_of([b"".join(lines)], WAITS)


@pytest.mark.parametrize("length", [1, 10, 14, 1000])
def test_a_turn_ends_where_the_session_waits_for_its_client_or_the_disk(length: int) -> None:
    trace = load(0x40000) + ASK + load(0x40040) + load(0x40080) + FLUSH + ASK
    pieces = [trace[at : at + length] for at in range(0, len(trace), length)]
    turns: list[list[int]] = [[]]
    for one in parts_of(pieces, WAITS):
        turns[-1] += one.accesses.addresses.tolist()
        if one.waits_at is not None:
            turns.append([])
    assert turns == [[0x40000], [ASKS, 0x40040, 0x40080], [FLUSHES], [ASKS]]


def placed(memory: OtherMemory, *addresses: int) -> list[int]:
    [part] = parts(*map(load, addresses))
    return [int(one) for one in memory.place(part).accesses.addresses]


def test_shared_memory_and_code_of_both_are_the_same_and_heaps_are_not() -> None:
    memory = other_memory(MAPPINGS, MAPPINGS)
    ask, shared, last, behind, own = placed(memory, 0x1008, 0x10000, 0x1FFF8, 0x20000, 0x40008)
    assert (ask, shared, last) == (0x1008, 0x10000, 0x1FFF8)
    # Above all addresses of a process, and at the same place within a page, which is all that L1d goes by.
    assert min(behind, own) > 1 << 48
    assert (behind % 4096, own % 4096) == (0, 8)


def test_what_only_one_has_mapped_or_has_mapped_elsewhere_is_its_own() -> None:
    moved = MemoryMapping(0x11000, 0x21000, is_writable=True, is_shared=True, path="/dev/zero")
    memory = other_memory(MAPPINGS, (CODE, moved, HEAP, OTHER_LIBRARY))
    assert min(placed(memory, 0x12000, 0x60000)) > 1 << 48
    assert placed(memory, 0x1000) == [0x1000]


def test_pages_that_are_scattered_remain_apart() -> None:
    addresses = np.arange(0, 1 << 30, 4096)
    many = Accesses(
        np.zeros(len(addresses), dtype=np.bool_), addresses, np.ones(len(addresses), dtype=np.int64)
    )
    found = NOTHING_IN_COMMON.place(TurnPart(many, None)).accesses.addresses
    assert len(np.unique(found)) == len(addresses)


MINE = (load(0x40000), load(0x10000), ASK, load(0x40000), load(0x10000))


def test_a_turn_of_another_session_takes_lines_away() -> None:
    # Alone: both lines are new, and are there at the second time. The other session's two lines of its own
    # and its line of shared memory push out the heap's line, and shared memory's was used by both.
    alone = tally_in_turns(parts(*MINE), parts(), caches()).misses
    assert alone.l1d == Counter({(0x40000, 0): 1, (0x10000, 0): 1})
    other = (load(0x40000), load(0x10000), load(0x40040), ASK, load(0x10040))
    memory = other_memory(MAPPINGS, MAPPINGS)
    found = tally_in_turns(parts(*MINE), map(memory.place, parts(*other)), caches())
    assert found.turns == {ASKS: 1}
    assert found.misses.l1d == Counter({(0x40000, 0): 1, (0x10000, 0): 1, (0x40000, ASKS): 1})
    assert found.misses.l2 == Counter({(0x40000, 0): 1, (0x10000, 0): 1})  # the second one has room for all
    assert found.misses.instructions == 1


def test_what_the_other_one_has_brought_is_there() -> None:
    other = (load(0x10000), ASK)
    memory = other_memory(MAPPINGS, MAPPINGS)
    found = tally_in_turns(parts(ASK, load(0x10000)), map(memory.place, parts(*other)), caches())
    assert found.misses.l1d == Counter()


def test_another_session_that_has_no_turn_left_takes_nothing() -> None:
    found = tally_in_turns(parts(*MINE, ASK, FLUSH), map(NOTHING_IN_COMMON.place, parts()), caches())
    assert found.turns == {ASKS: 2, FLUSHES: 1}
    assert sum(found.misses.l1d.values()) == 2


def test_structures_are_ranked_by_what_is_added_and_all_of_it_is_there() -> None:
    names = {1: "heap", 2: "pages", 3: "stack", 4: "locks"}
    alone = Tally(Counter({(1, 0): 100, (2, 0): 50, (3, 0): 9}), Counter({(1, 0): 10}))
    in_turns = Tally(
        Counter({(1, 0): 200, (2, 0): 250, (3, 0): 10, (4, 0): 4}), Counter({(1, 0): 10, (2, 0): 30})
    )
    turns = TallyInTurns(in_turns, Counter({ASKS: 4, FLUSHES: 2}))
    found = compared(alone, turns, lambda address: names[address], 2, FLUSHES)
    assert (found.turns, found.flushes) == (3, 1)
    assert found.structures == (
        MissesInTurns("pages", 25.0, 125.0, 0.0, 15.0),
        MissesInTurns("heap", 50.0, 100.0, 5.0, 5.0),
        MissesInTurns(OTHERS, 4.5, 7.0, 0.0, 0.0),
    )
