"""How blocks end: COMMIT and ROLLBACK of kinds of transaction, by counts and by observed ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import ne

from pgdyno.base import numbers
from pgdyno.postgres.statement_counts import SightedEnd
from pgdyno.workload.capture.statements import TransactionPart
from pgdyno.workload.capture.transactions import (
    Grouping,
    SeenTransaction,
    has_query,
    rounded_times,
    with_enough_savepoints,
    with_savepoints_first,
)

_HARDLY_ANY = 0.005  # share of transactions: those that failed and were rolled back, for example
_SAME = 0.05  # difference between counts that are treated as equal
_EXACT = 0.01  # difference between exact counts of the same blocks: some are cut by the capture's ends
_AGREE = 0.1  # difference between two counts of the same transactions; the database's come late
_STRAY = 0.25  # share of observed ends that can be of other transactions, if the counts agree
_FEW = 5  # observed ends: a kind with more is known
_MOST_KINDS = 12  # of block, for which all ways to end are compared


@dataclass(frozen=True)
class BlockEnds:
    """How blocks ended: observed ends, and the share of all blocks that was rolled back.

    ``is_exact``: the server counted COMMIT and ROLLBACK. Otherwise the share is of the database's counts, in
    which failed statements outside blocks are rollbacks too.
    """

    ended: Sequence[SightedEnd]
    rolled_back_share: float
    is_exact: bool


def with_ends(grouping: Grouping, kinds: Mapping[int, TransactionPart], ends: BlockEnds) -> Grouping:
    """Return the kinds of transaction with their ends.

    If all transactions of a kind end in the same way, the counts often leave one solution, and observed ends
    confirm it: some of them are of other transactions (see ``SeenEnds``). Otherwise, a kind with both ends is
    divided. If inexact counts contradict the observed ends of all kinds, these are taken.
    """
    blocks = [one for one in grouping.groups if one.is_block]
    counted = ends.rolled_back_share
    if counted < _HARDLY_ANY or not blocks:
        return grouping
    observed = [_ends_of_block(one, ends.ended) for one in blocks]
    are_seen = all(its.total() >= _FEW for its in observed)
    shares, is_drawn = _all_or_none(blocks, observed, ends), False
    if not shares:
        shares = [its[True] / max(1, its.total()) for its in observed]
        if len(blocks) == 1 and ends.is_exact:
            shares = [counted]
        is_off = abs(_share(blocks, shares) - counted) > _AGREE
        if not are_seen or (is_off and ends.is_exact):
            shares, is_drawn = _with_the_rest(blocks, observed, counted), True
    groups: list[SeenTransaction] = [one for one in grouping.groups if not one.is_block]
    for one, share in zip(blocks, shares, strict=True):
        of_statements = _shares_of_statements(one, ends.ended)
        is_divided = _HARDLY_ANY <= share <= 1 - _HARDLY_ANY
        is_drawn |= is_divided and any(statement not in of_statements for statement, _ in one.calls)
        groups += _divided(one, kinds, share, of_statements)
    share = _share(blocks, shares)
    return replace(
        grouping,
        groups=tuple(groups),
        drawn_rollbacks=share if is_drawn else 0.0,
        uncounted_ends=None if ends.is_exact else share,
    )


def _share(blocks: Sequence[SeenTransaction], shares: Iterable[float]) -> float:
    """Return the share of all blocks, from those of each kind."""
    both = zip(blocks, shares, strict=True)
    return sum(one.count * share for one, share in both) / sum(one.count for one in blocks)


def _with_the_rest(
    blocks: Sequence[SeenTransaction], observed: Sequence[Counter[bool]], counted: float
) -> list[float]:
    """Return observed shares, and the rest of the counted rollbacks for kinds of which few ends were seen.

    If the observed ones do not leave such a rest, all kinds have the counted share.
    """
    known = [its[True] / its.total() if its.total() >= _FEW else None for its in observed]
    unknown = sum(one.count for one, share in zip(blocks, known, strict=True) if share is None)
    rest = counted - _share(blocks, (share or 0.0 for share in known))
    its = rest * sum(one.count for one in blocks) / unknown if unknown else -1.0
    if not -_SAME <= its <= 1 + _SAME:
        return [counted] * len(blocks)
    return [min(1.0, max(0.0, its)) if share is None else share for share in known]


def _all_or_none(
    blocks: Sequence[SeenTransaction], observed: Sequence[Counter[bool]], counted: BlockEnds
) -> list[float]:
    """Return 1 for kinds that were all rolled back, 0 for others, such that there are as many as counted.

    An empty list if the observed ends contradict all ways, or if as many of them agree with different ways.
    """
    if len(blocks) > _MOST_KINDS:
        return []
    tolerance = _EXACT if counted.is_exact else _SAME

    def distance(way: Sequence[bool]) -> float:
        return abs(_share(blocks, way) - counted.rolled_back_share)

    def agreeing(way: Sequence[bool]) -> int:
        return sum(its[is_it] for its, is_it in zip(observed, way, strict=True))

    ways = [way for way in product((False, True), repeat=len(blocks)) if distance(way) <= tolerance]
    if not ways:
        return []
    best = max(ways, key=lambda way: (agreeing(way), -distance(way)))
    is_open = any(
        agreeing(way) == agreeing(best) and _share(blocks, map(ne, way, best)) > _SAME for way in ways
    )
    is_denied = agreeing(best) < (1 - _STRAY) * sum(its.total() for its in observed)
    return [] if is_open or is_denied else [float(is_it) for is_it in best]


def _ends_of_block(block: SeenTransaction, ended: Iterable[SightedEnd]) -> Counter[bool]:
    """Return how many of a kind's transactions were seen to be rolled back, and committed."""
    statements = {one for one, _ in block.calls}
    return Counter(end.is_rolled_back for end in ended if not statements.isdisjoint(end.statements))


def _shares_of_statements(block: SeenTransaction, ended: Iterable[SightedEnd]) -> dict[int, float]:
    """Return the share of rolled back transactions among those seen with a statement, if seen often."""
    seen, rolled_back = Counter[int](), Counter[int]()
    for end in ended:
        seen.update(end.statements)
        rolled_back.update(end.statements if end.is_rolled_back else ())
    shares = {one: rolled_back[one] / seen[one] for one, _ in block.calls if seen[one] >= _FEW}
    return {one: float(round(its)) if abs(its - round(its)) <= _STRAY else its for one, its in shares.items()}


def _divided(
    block: SeenTransaction,
    kinds: Mapping[int, TransactionPart],
    rolled_back: float,
    observed: Mapping[int, float],
) -> Iterator[SeenTransaction]:
    """Yield the committed and the rolled back transactions of a kind, each with its statements' calls."""
    observed = observed if 0 < rolled_back < 1 else {}
    for is_rolled_back, share in ((False, 1 - rolled_back), (True, rolled_back)):
        if share < _HARDLY_ANY:
            continue
        times = {}
        for one, its in block.calls:
            its_share = observed.get(one, rolled_back)
            part = its * (its_share if is_rolled_back else 1 - its_share) / share
            if part > _HARDLY_ANY:
                times[one] = rounded_times(part)
        if has_query(times, kinds):
            ordered = with_savepoints_first(list(times), kinds)
            calls = with_enough_savepoints({one: times[one] for one in ordered}, kinds)
            yield SeenTransaction(block.count * share, calls, is_block=True, is_rolled_back=is_rolled_back)


def notes_on_ends(grouping: Grouping, *, is_reset: bool) -> Iterator[str]:
    """Yield notes on gaps in the information about the ends of blocks; ``is_reset``: so were their counts."""
    if is_reset:
        yield "pg_stat_database was reset during the capture: numbers of commits and rollbacks are unknown"
    if grouping.drawn_rollbacks:
        yield (
            f"{numbers.share(grouping.drawn_rollbacks)} of the blocks (BEGIN …) were rolled back, the others "
            "committed; which ones is unknown, and drawn at random"
        )
    if grouping.uncounted_ends is not None:
        yield (
            "the server did not count COMMIT and ROLLBACK, because they were prepared: that "
            f"{numbers.share(grouping.uncounted_ends)} of the blocks were rolled back is inferred from "
            "pg_stat_database and sampled sessions"
        )
