"""Infers transactions from the order in which sessions were seen to run statements.

The server counts statements, not transactions. Sessions are sampled repeatedly: two statements seen in one
transaction belong together, in the order of most such pairs. The counts give the number of calls of each
statement per transaction.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.postgres.statement_counts import Sighting
from pgdyno.workload.capture.statements import QUERIES_OR_WITHIN, TransactionPart

_SAME = 0.05  # counts that differ by less are treated as equal: snapshots split transactions
_ALIKE = 0.02  # difference between counts in one transaction: each session has at most one in progress
_MANY = 50  # sightings of a block: enough to see two of its statements in a row
_AGREE = 0.1  # difference between two counts of the same transactions; the database's come late
_FEW = 5  # sightings: a statement seen more often, but never with another one, is a separate transaction


@dataclass(frozen=True)
class SeenTransaction:
    """A kind of transaction: its statements in order, each with its number of calls per transaction.

    ``count`` is the number of such transactions. ``is_rolled_back``: ROLLBACK ends the block, not COMMIT.
    """

    count: float
    calls: tuple[tuple[int, float], ...]
    is_block: bool
    is_rolled_back: bool = False


@dataclass(frozen=True)
class Grouping:
    """The kinds of transaction, and the gaps in this knowledge.

    ``untold`` is the number of blocks with unknown statements. ``guessed`` are statements too short to be
    seen; they are assigned to the block that ran equally often. ``is_mixed``: a block may stand for several
    kinds that were rarely seen, and calls some statements only now and then. ``drawn_rollbacks`` is the share
    of blocks that are rolled back at random, because it is unknown which ones were. ``uncounted_ends`` is the
    share of rollbacks where the server did not count COMMIT and ROLLBACK; None: it did.
    """

    groups: tuple[SeenTransaction, ...]
    untold: int
    guessed: tuple[int, ...]
    is_mixed: bool = False
    drawn_rollbacks: float = 0.0
    uncounted_ends: float | None = None


def group(
    calls: Mapping[int, int],
    kinds: Mapping[int, TransactionPart],
    sightings: Sequence[Sighting],
    transactions: int = 0,
) -> Grouping:
    """Return the kinds of transaction.

    ``calls`` has the number of calls of each statement, ``kinds`` its role in a transaction, ``transactions``
    is the number of transactions that the database counted. pg_stat_statements counts only the first
    execution of a prepared BEGIN: with fewer of them than blocks, blocks are as many as the calls of their
    statements, or as the transactions that are left if these are far more.
    """
    pairs, seen = _pairs(sightings), Counter(one.statement for one in sightings)
    queries = [one for one in calls if kinds[one] in QUERIES_OR_WITHIN]
    begun = sum(count for one, count in calls.items() if kinds[one] is TransactionPart.BEGIN)
    in_blocks = {one for pair in pairs for one in pair} | {
        one.statement for one in sightings if one.is_between
    }
    parts = _connected(queries, pairs)
    blocks = [part for part in parts if not in_blocks.isdisjoint(part) and has_query(part, kinds)]
    alone = [part for part in parts if part not in blocks and has_query(part, kinds)]
    strays = [one for part in parts if not has_query(part, kinds) for one in part]
    if begun < max((_transactions(part, calls) for part in blocks), default=0) / 2:
        begun = 0  # not counted
    singles = sum(calls[one] for part in alone for one in part)
    whole = begun or max(0, transactions - singles)
    are_parts = not (agreeing := _kinds(blocks, calls, whole))
    blocks = agreeing or _merged(_with_rare_ones_merged(blocks, seen), calls, begun or whole)
    blocks = [_ordered(part, pairs) for part in blocks]
    guessed = [
        part[0] for part in alone if seen[part[0]] < _FEW and _host(part[0], blocks, calls) is not None
    ]
    for one in [*guessed, *strays]:
        host = _host(one, blocks, calls) or _nearest(one, blocks, calls)
        if host is not None:
            host.append(one)
    groups = [_group(part, calls, kinds, is_block=True) for part in blocks]
    groups += [_group(part, calls, kinds, is_block=False) for part in alone if part[0] not in guessed]
    if not begun and len(blocks) == 1:
        # Statements that take turns, as on several tables, are called less often than there are blocks.
        is_more = whole - _transactions(blocks[0], calls) > _AGREE * transactions
        is_enough = sum(calls[one] for one in blocks[0]) >= whole
        begun = whole if is_more and is_enough else 0
    found, untold = _with_as_many_blocks(groups, calls, begun)
    is_mixed = are_parts and any(times % 1 for one in found if one.is_block for _, times in one.calls)
    return Grouping(found, untold, tuple(guessed), is_mixed=is_mixed)


def known(transactions: Iterable[SeenTransaction], kinds: Mapping[int, TransactionPart]) -> Grouping:
    """Return exactly known transactions, restricted to replayed statements (those in ``kinds``).

    BEGIN and COMMIT are among the calls of blocks.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    calls: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for one in transactions:
        replayed = {statement: times for statement, times in one.calls if statement in kinds}
        if has_query(replayed, kinds):
            kind = tuple(with_savepoints_first(tuple(replayed), kinds))
            counts[kind] += round(one.count)
            for statement in kind:
                calls[kind][statement] += round(replayed[statement] * one.count)
    groups = (
        SeenTransaction(
            count,
            with_enough_savepoints({one: calls[kind][one] / count for one in kind}, kinds),
            is_block=len(kind) > 1,
        )
        for kind, count in counts.items()
    )
    return Grouping(tuple(groups), untold=0, guessed=())


def has_query(members: Iterable[int], kinds: Mapping[int, TransactionPart]) -> bool:
    """Whether statements can form a transaction: a savepoint alone cannot."""
    return any(kinds[one] is TransactionPart.QUERY for one in members)


def _kinds(blocks: Sequence[list[int]], calls: Mapping[int, int], whole: int) -> list[list[int]]:
    """Return blocks that together are as many as the server counted, however rarely they were seen.

    If they are more, those that are equally many are parts of one. An empty list if the counts do not agree.
    """
    by_count: list[list[int]] = []
    for part in sorted(blocks, key=lambda part: _transactions(part, calls)):
        if by_count and _transactions(part, calls) <= (1 + _ALIKE) * _transactions(by_count[-1], calls):
            by_count[-1] = [*by_count[-1], *part]
        else:
            by_count.append(list(part))
    for parts in ([list(part) for part in blocks], by_count):
        if abs(sum(_transactions(part, calls) for part in parts) - whole) <= _AGREE * whole:
            return parts
    return []


def _with_rare_ones_merged(blocks: Sequence[list[int]], seen: Mapping[int, int]) -> list[list[int]]:
    """Return blocks, with rarely seen ones merged into the one seen most often.

    They may be separate kinds; then the frequency of statements is still right, but transactions are too
    large.
    """
    if not blocks:
        return []
    sightings = [sum(seen[one] for one in part) for part in blocks]
    largest = sightings.index(max(sightings))
    few = [at for at, count in enumerate(sightings) if count < _MANY and at != largest]
    joined = [*blocks[largest], *(one for at in few for one in blocks[at])]
    return [joined, *(part for at, part in enumerate(blocks) if at not in few and at != largest)]


def _merged(blocks: Sequence[list[int]], calls: Mapping[int, int], begun: int) -> list[list[int]]:
    """Return blocks, merging those that ran as often as blocks were begun: they are parts of one block."""
    whole = [part for part in blocks if abs(_transactions(part, calls) - begun) <= _SAME * begun]
    if not begun or len(whole) < 2:
        return [list(part) for part in blocks]
    others = [list(part) for part in blocks if part not in whole]
    return [[one for part in whole for one in part], *others]


def _host(one: int, blocks: Sequence[list[int]], calls: Mapping[int, int]) -> list[int] | None:
    """Return the block that ran as often as a statement; None if no block did."""
    nearest = _nearest(one, blocks, calls)
    if nearest is None or abs(_transactions(nearest, calls) - calls[one]) > _ALIKE * calls[one]:
        return None
    return nearest


def _nearest(one: int, blocks: Sequence[list[int]], calls: Mapping[int, int]) -> list[int] | None:
    return min(blocks, key=lambda part: abs(_transactions(part, calls) - calls[one]), default=None)


def _group(
    members: Sequence[int], calls: Mapping[int, int], kinds: Mapping[int, TransactionPart], *, is_block: bool
) -> SeenTransaction:
    count = _transactions(members, calls)
    times = {one: rounded_times(calls[one] / count) for one in with_savepoints_first(members, kinds)}
    return SeenTransaction(count, with_enough_savepoints(times, kinds), is_block)


def with_enough_savepoints(
    times: dict[int, float], kinds: Mapping[int, TransactionPart]
) -> tuple[tuple[int, float], ...]:
    """Return calls with enough savepoints for those that need one: fractional numbers of calls are drawn."""
    needed = max((its for one, its in times.items() if kinds[one] is not TransactionPart.QUERY), default=0.0)
    for one in times:
        if kinds[one] is TransactionPart.SAVEPOINT:
            times[one] = float(math.ceil(needed))
    return tuple(times.items())


def _pairs(sightings: Iterable[Sighting]) -> Counter[tuple[int, int]]:
    """Return how often a statement was seen right after another one in the same transaction."""
    pairs: Counter[tuple[int, int]] = Counter()
    last: dict[int, Sighting] = {}
    for one in sightings:
        before = last.get(one.session)
        if before is not None and before.transaction == one.transaction and before.statement != one.statement:
            pairs[before.statement, one.statement] += 1
        last[one.session] = one
    return pairs


def _connected(queries: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return groups of statements that were seen together, directly or transitively."""
    parent = {one: one for one in queries}

    def root(one: int) -> int:
        while parent[one] != one:
            one = parent[one]
        return one

    for first, second in pairs:
        if first in parent and second in parent:
            parent[root(first)] = root(second)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for one in queries:
        members[root(one)].append(one)
    return list(members.values())


def _transactions(members: Sequence[int], calls: Mapping[int, int]) -> float:
    """Return the number of a group's transactions: the count shared by most of its statements.

    If no two share a count, each transaction is assumed to call the rarest statement once.
    """
    best, most = float(min(calls[one] for one in members)), 1
    for one in members:
        close = [calls[other] for other in members if abs(calls[other] - calls[one]) <= _SAME * calls[one]]
        if len(close) > most:
            best, most = sum(close) / len(close), len(close)
    return best


def _ordered(members: Sequence[int], pairs: Mapping[tuple[int, int], int]) -> list[int]:
    """Return statements in their most frequent order."""
    weight = {
        one: sum(pairs.get((one, other), 0) - pairs.get((other, one), 0) for other in members)
        for one in members
    }
    ordered: list[int] = []
    left = list(members)
    while left:
        first = max(
            left,
            key=lambda one: (
                -sum(pairs.get((other, one), 0) > pairs.get((one, other), 0) for other in left),
                weight[one],
            ),
        )
        ordered.append(first)
        left.remove(first)
    return ordered


def rounded_times(times: float) -> float:
    """Return a number of calls per transaction, rounded if it is nearly an integer."""
    whole = round(times)
    return float(whole) if whole and abs(times - whole) <= _SAME * whole else times


def with_savepoints_first(ordered: Sequence[int], kinds: Mapping[int, TransactionPart]) -> list[int]:
    """Return statements with those that need a savepoint moved behind the first one; removed without any."""
    savepoints = [place for place, one in enumerate(ordered) if kinds[one] is TransactionPart.SAVEPOINT]
    if not savepoints:
        return [one for one in ordered if kinds[one] is not TransactionPart.BACK]
    early = [one for one in ordered[: savepoints[0]] if kinds[one] is TransactionPart.BACK]
    later = [one for one in ordered if one not in early]
    place = later.index(ordered[savepoints[0]]) + 1
    return [*later[:place], *early, *later[place:]]


def _with_as_many_blocks(
    groups: Sequence[SeenTransaction], calls: Mapping[int, int], begun: int
) -> tuple[tuple[SeenTransaction, ...], int]:
    """Return groups and the number of blocks in none.

    A single kind of block gets all blocks begun if its statements were called often enough to be in each.
    """
    blocks = [one for one in groups if one.is_block]
    if len(blocks) == 1 and begun >= (1 - _SAME) * blocks[0].count:
        [only] = blocks
        if sum(calls[one] for one, _ in only.calls) >= (1 - _SAME) * begun:
            times = tuple((one, rounded_times(its * only.count / begun)) for one, its in only.calls)
            whole = SeenTransaction(begun, times, is_block=True)
            return tuple(whole if one is only else one for one in groups), 0
    return tuple(groups), max(0, begun - round(sum(one.count for one in blocks)))
