"""Finds statements that ran outside of blocks (BEGIN …), each as a transaction of its own.

Sessions that are idle after a statement have ended its transaction; those that are idle in transaction are
in a block. Where the server counted BEGIN, the number of transactions without one decides how often: the
database counts them, whichever statements they had.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.postgres.statement_counts import SightedWait

_FEW = 5  # sightings: a statement seen more often, but never with another one, is a separate transaction
_REPORTED_S = 1.0  # sessions report their transactions about once a second
_LEAST_ERROR = 0.02  # of the number of transactions
_STEPS = 60  # of a bisection


@dataclass(frozen=True)
class CountedTransactions:
    """The database's number of transactions of replayed statements; 0: unknown.

    ``others`` are calls of statements that are not replayed, taken for transactions: if some of them ran in
    blocks, there are as many more. ``seconds`` is the duration.
    """

    whole: int = 0
    others: int = 0
    seconds: float = 60.0

    @property
    def error(self) -> float:
        """The possible error of the number: sessions report their transactions late."""
        return self.whole * min(1.0, max(_LEAST_ERROR, _REPORTED_S / self.seconds))


@dataclass(frozen=True)
class Singles:
    """Statements with their numbers of calls outside of blocks.

    ``in_both`` ran in blocks too. ``unsure`` were seen too rarely: they may be parts of a block.
    """

    calls: Mapping[int, int]
    outside: Mapping[int, float]
    in_both: Collection[int]
    unsure: Sequence[int]

    @property
    def transactions(self) -> float:
        """The number of such transactions."""
        return sum(self.outside.values())

    def calls_in_blocks(self, members: Collection[int]) -> dict[int, float]:
        """Return the calls of statements within blocks."""
        return {one: self.calls[one] - self.outside.get(one, 0.0) for one in members}


def find_singles(
    calls: Mapping[int, int],
    alone: Sequence[int],
    in_blocks: Collection[int],
    waits: Sequence[SightedWait],
    seen: Mapping[int, int],
) -> Singles:
    """Return the statements that ran outside of blocks.

    ``alone`` were never seen in a block, ``in_blocks`` were; ``waits`` are those of sessions after a
    statement, ``seen`` has the number of sightings. New waits, which began during a burst, are seen however
    long they last; so they are taken if they are enough.
    """
    ended = Counter(one.statement for one in waits if one.is_alone)
    outside = {one: float(calls[one]) for one in alone}
    in_both = [one for one in in_blocks if ended[one]]
    for one in in_both:
        its = [wait for wait in waits if wait.statement == one]
        new = [wait for wait in its if wait.is_new]
        chosen = new if len(new) >= _FEW else its
        waited = sum(wait.is_alone for wait in chosen)
        alone_waits = max(1, min(waited, calls[one]))  # failed statements are not counted, but waited after
        share = alone_waits / (alone_waits + max(1, len(chosen) - waited))
        outside[one] = float(min(round(calls[one] * share), calls[one] - 1))
    unsure = [one for one in alone if seen.get(one, 0) < _FEW and not ended[one]]
    return Singles(calls, outside, in_both, unsure)


def as_counted(
    singles: Singles, begun: int, counted: CountedTransactions, seen: Mapping[int, int]
) -> Singles:
    """Return the statements with as many calls outside of blocks as transactions were counted without BEGIN.

    Unsure statements stay outside if so many were counted; those seen more often come first.
    """
    calls = singles.calls
    both = {one: singles.outside[one] for one in singles.in_both}
    unsure = sum(calls[one] for one in singles.unsure)
    rest = counted.whole - begun - (singles.transactions - sum(both.values()) - unsure)
    wanted = min(max(sum(both.values()), rest - unsure), rest + counted.others)
    if abs(sum(both.values()) - wanted) > counted.error:
        both = _scaled(both, calls, wanted)
    rest -= sum(both.values())
    left = list(singles.unsure)
    if unsure > counted.error + counted.others:
        for one in sorted(singles.unsure, key=lambda one: (-seen.get(one, 0), -calls[one])):
            if rest >= calls[one] / 2:
                rest -= calls[one]
                left.remove(one)
    return replace(singles, outside={**singles.outside, **both}, unsure=left)


def _scaled(outside: Mapping[int, float], calls: Mapping[int, int], wanted: float) -> dict[int, float]:
    """Return numbers of calls that add up to ``wanted``: one factor changes the odds of each."""
    low, high = -_STEPS / 2, _STEPS / 2
    found: dict[int, float] = {}
    for _ in range(_STEPS):
        factor = math.exp((low + high) / 2)
        found = {
            one: calls[one] * factor * its / (calls[one] - its + factor * its) for one, its in outside.items()
        }
        low, high = ((low + high) / 2, high) if sum(found.values()) < wanted else (low, (low + high) / 2)
    return {one: float(min(round(its), calls[one] - 1)) for one, its in found.items()}
