"""Two sessions of a server that take turns on one CPU's caches.

A session's turn ends where it asks for its client's next message, and where it has WAL written to the disk:
there it waits, and another one goes on.
Caches have physical lines. Memory that both have mapped alike, and that neither writes for itself alone, is
the same: shared memory, code, constants. All else of the other session lies elsewhere, its pages scattered
as the kernel's are: otherwise two heaps that begin at one address would fall on the same sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgdyno.model.profiles.data_misses import MissesInTurns, SessionsInTurns, total
from pgdyno.model.profiles.process_memory import MemoryMapping
from pgdyno.profiling.misses.lru import SplitCaches
from pgdyno.profiling.misses.tally import OTHERS, Naming, Tally, added
from pgdyno.profiling.misses.traces import Accesses, Numbers, accesses_in

_PAGE_BITS = 12
_ELSEWHERE = 1 << 56  # above all addresses of a process
_PAGES = (1 << 40) - 1
_SCATTER = 0x9E3779B1  # odd, so that no two pages become one (Knuth's multiplicative hashing)
_LEAST_SHARE = 0.02  # of all additional misses; arbitrary


@dataclass(frozen=True)
class TurnPart:
    """Accesses of one turn, which ends with them where the session waits at an instruction, if it does."""

    accesses: Accesses
    waits_at: int | None


def parts_of(pieces: Iterable[bytes], waits: Collection[int]) -> Iterator[TurnPart]:
    """Yield a trace by turns: each instruction at one of these addresses begins one."""
    known = np.array([*waits], dtype=np.int64)
    for accesses in accesses_in(pieces):
        begin = 0
        for end in np.flatnonzero(accesses.is_code & np.isin(accesses.addresses, known)).tolist():
            yield TurnPart(accesses.part(begin, end), int(accesses.addresses[end]))
            begin = end
        yield TurnPart(accesses.part(begin, len(accesses.addresses)), None)


@dataclass(frozen=True)
class OtherMemory:
    """Another session's memory: ``begins`` and ``ends`` are of the ranges that both have in common."""

    begins: Numbers
    ends: Numbers

    def place(self, part: TurnPart) -> TurnPart:
        """Return a part of its turn with addresses that tell it from the first session."""
        addresses = part.accesses.addresses
        at = np.searchsorted(self.begins, addresses, side="right") - 1
        is_common = (at >= 0) & (addresses < np.append(self.ends, 0)[at])
        pages = (addresses >> _PAGE_BITS) * _SCATTER & _PAGES
        own = _ELSEWHERE | (pages << _PAGE_BITS) | (addresses & ((1 << _PAGE_BITS) - 1))
        return replace(part, accesses=replace(part.accesses, addresses=np.where(is_common, addresses, own)))


def other_memory(one: Sequence[MemoryMapping], other: Sequence[MemoryMapping]) -> OtherMemory:
    """Return where the other session's memory lies, by the mappings of both."""
    common = sorted(
        (its.begin, its.end)
        for its in {*one} & {*other}
        if (its.is_shared or not its.is_writable) and its.end <= _ELSEWHERE  # above it is the vsyscall page
    )
    begins, ends = (np.array([its[edge] for its in common], dtype=np.int64) for edge in (0, 1))
    return OtherMemory(begins, ends)


@dataclass(frozen=True)
class TallyInTurns:
    """A session's misses, and how many turns it had, by the instruction before which they ended."""

    misses: Tally
    turns: Counter[int]


def tally_in_turns(
    parts: Iterable[TurnPart], others: Iterator[TurnPart], caches: SplitCaches
) -> TallyInTurns:
    """Return a session's misses where another has a turn after each of its own, as long as it has some."""
    found, turns = Tally(), Counter[int]()
    for one in parts:
        found.take(one.accesses, caches)
        if one.waits_at is not None:
            turns[one.waits_at] += 1
            _pass_turn(others, caches)
    return TallyInTurns(found, turns)


def _pass_turn(parts: Iterator[TurnPart], caches: SplitCaches) -> None:
    for one in parts:
        caches.take(one.accesses)
        if one.waits_at is not None:
            return


def compared(
    alone: Tally, found: TallyInTurns, structure_of: Naming, transactions: int, flushes_at: int | None = None
) -> SessionsInTurns:
    """Return misses per transaction of a session alone and in turns, those that grow most first.

    ``flushes_at`` is where it has WAL written to the disk.
    """
    in_turns = found.misses
    counts = [added(one, structure_of) for one in (alone.l1d, in_turns.l1d, alone.l2, in_turns.l2)]
    rows = [
        MissesInTurns(name, *(one[name] / transactions for one in counts))
        for name in {name: None for one in counts for name in one}
    ]
    rows.sort(key=lambda row: (-row.more_l1d, row.structure))
    least_l1d, least_l2 = (
        _LEAST_SHARE * sum(map(abs, more)) for more in ((r.more_l1d for r in rows), (r.more_l2 for r in rows))
    )
    shown = [row for row in rows if abs(row.more_l1d) > least_l1d or abs(row.more_l2) > least_l2]
    rare = [row for row in rows if row not in shown]
    if rare:
        shown.append(total(OTHERS, rare))
    flushes = 0 if flushes_at is None else found.turns[flushes_at]
    return SessionsInTurns(found.turns.total() / transactions, tuple(shown), flushes / transactions)
