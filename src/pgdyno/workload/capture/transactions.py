"""Infers transactions from the order in which sessions were seen to run statements.

The server counts statements, not transactions. Sessions are sampled repeatedly: two statements seen in one
transaction belong together, in the order of most such pairs. The counts give the number of calls of each
statement per transaction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.postgres.statement_counts import SightedWait, Sighting
from pgdyno.workload.capture.blocks import Part, blocks_of, connected, transactions_in
from pgdyno.workload.capture.singles import CountedTransactions, as_counted, find_singles
from pgdyno.workload.capture.statements import QUERIES_OR_WITHIN, TransactionPart

_SAME = 0.05  # counts that differ by less are treated as equal: snapshots split transactions
_ALIKE = 0.02  # difference between counts in one transaction: each session has at most one in progress
_AGREE = 0.1  # difference between two counts of the same transactions; the database's come late


@dataclass(frozen=True)
class SeenTransaction:
    """A kind of transaction: its statements in order, each with its number of calls per transaction.

    ``count`` is the number of such transactions. ``is_rolled_back``: ROLLBACK ends the block, not COMMIT.
    ``is_in_order``: a log has the order, and a statement may be called again after others.
    """

    count: float
    calls: tuple[tuple[int, float], ...]
    is_block: bool
    is_rolled_back: bool = False
    is_in_order: bool = False


@dataclass(frozen=True)
class Grouping:
    """The kinds of transaction, and the gaps in this knowledge.

    ``untold`` is the number of blocks with unknown statements. ``guessed`` are statements too short to be
    seen; they are assigned to the block that ran equally often. ``in_both`` are statements that ran in blocks
    and outside of them. ``is_mixed``: a block stands for several kinds that were rarely seen, and calls some
    statements only now and then. ``uncounted`` is the number of transactions that the database counted and
    the kinds lack, negative if they have more; 0 if both agree. ``assumed_share`` is the share of
    transactions with assumed statements. ``drawn_rollbacks`` is the share of blocks that are rolled back at
    random, because it is unknown which ones were. ``uncounted_ends`` is the share of rollbacks where the
    server did not count COMMIT and ROLLBACK; None: it did.
    """

    groups: tuple[SeenTransaction, ...]
    untold: int
    guessed: tuple[int, ...]
    in_both: tuple[int, ...] = ()
    is_mixed: bool = False
    uncounted: int = 0
    assumed_share: float = 0.0
    drawn_rollbacks: float = 0.0
    uncounted_ends: float | None = None


def group(
    calls: Mapping[int, int],
    kinds: Mapping[int, TransactionPart],
    sightings: Sequence[Sighting],
    counted: CountedTransactions = CountedTransactions(),  # noqa: B008 — immutable
    waits: Sequence[SightedWait] = (),
) -> Grouping:
    """Return the kinds of transaction.

    ``calls`` has the number of calls of each statement, ``kinds`` its role in a transaction, ``waits`` what
    sessions were seen to do after it. pg_stat_statements counts only the first execution of a prepared BEGIN:
    with fewer of them than blocks, blocks are as many as the calls of their statements, or as the
    transactions that are left if these are far more.
    """
    pairs, seen = _pairs(sightings), Counter(one.statement for one in sightings)
    begun = sum(count for one, count in calls.items() if kinds[one] is TransactionPart.BEGIN)
    in_blocks = {one for pair in pairs for one in pair} | {
        one.statement for one in sightings if one.is_between
    }
    parts = connected([one for one in calls if kinds[one] in QUERIES_OR_WITHIN], pairs)
    whole_parts = [part for part in parts if has_query(part, kinds)]
    linked = [part for part in whole_parts if not in_blocks.isdisjoint(part)]
    alone = [part[0] for part in whole_parts if part not in linked]
    queries = {one for part in linked for one in part if kinds[one] is TransactionPart.QUERY}
    singles = find_singles(calls, alone, queries, waits, seen)
    if begun < max((transactions_in(singles.calls_in_blocks(part)) for part in linked), default=0) / 2:
        begun = 0  # not counted
    if begun and counted.whole:
        singles = as_counted(singles, begun, counted, seen)
    whole = begun or max(0, counted.whole - singles.transactions)
    found = blocks_of(map(singles.calls_in_blocks, linked), sightings, whole)
    guessed = [one for one in singles.unsure if _host(calls[one], found.parts) is not None]
    added = [*guessed, *(one for part in parts if part not in whole_parts for one in part)]
    for one in added:
        host = _host(calls[one], found.parts) or _nearest(calls[one], found.parts)
        if host is not None:
            host[one] = float(calls[one])
    groups = [_group(part, _ordered(part, pairs, added), kinds) for part in found.parts]
    groups += (
        SeenTransaction(its, ((one, 1.0),), is_block=False)
        for one, its in singles.outside.items()
        if its and one not in guessed
    )
    if not begun and len(found.parts) == 1:
        # Statements that take turns, as on several tables, are called less often than there are blocks.
        is_more = whole - transactions_in(found.parts[0]) > _AGREE * counted.whole
        is_enough = sum(found.parts[0].values()) >= whole
        begun = round(whole) if is_more and is_enough else 0
    grouping = Grouping(*_with_as_many_blocks(groups, kinds, begun), tuple(guessed), tuple(singles.in_both))
    return _with_doubts(grouping, found.joined, counted)


def _with_doubts(grouping: Grouping, joined: Sequence[Part], counted: CountedTransactions) -> Grouping:
    """Return the kinds with the doubts about them; ``joined`` may be blocks of several kinds."""
    blocks = [(one, {statement for statement, _ in one.calls}) for one in grouping.groups if one.is_block]
    drawn = [its for one, its in blocks if any(times % 1 for _, times in one.calls)]
    mixed = [part for part in joined if any(its.issubset(part) for its in drawn)]
    doubtful = sum(
        one.count
        for one, its in blocks
        if any(its.issubset(part) for part in mixed) or not its.isdisjoint(grouping.guessed)
    )
    found = sum(one.count for one in grouping.groups) + grouping.untold
    differing = counted.whole - found if counted.whole else 0.0
    error = max(counted.error, _AGREE * counted.whole)
    uncounted = 0 if -counted.others - error <= differing <= error else round(differing)
    doubtful = min(found, doubtful + grouping.untold + abs(uncounted))
    share = doubtful / found if found else 0.0
    return replace(grouping, is_mixed=bool(mixed), uncounted=uncounted, assumed_share=share)


def notes_on_kinds(grouping: Grouping, names: Mapping[int, str]) -> Iterator[str]:
    """Yield notes on statements that may be in other transactions than those replayed."""
    if grouping.is_mixed:
        yield (
            "kinds of block (BEGIN …) that were rarely observed may be merged: statements with a fraction of "
            "a call are drawn independently. A log shows the kinds"
        )
    if grouping.in_both:
        yield (
            f"{', '.join(names[one] for one in grouping.in_both)}: ran in blocks (BEGIN …) and outside of "
            "them; how often outside is inferred from sampled sessions and from the number of transactions"
        )
    if grouping.uncounted > 0:
        yield (
            f"the database counted {grouping.uncounted} more transactions than are replayed: their "
            "statements failed, were not counted, or are replayed in blocks (BEGIN …)"
        )
    if grouping.uncounted < 0:
        yield (
            f"the database counted {-grouping.uncounted} fewer transactions than are replayed: some "
            "statements that are replayed as transactions ran in blocks (BEGIN …)"
        )
    if grouping.guessed:
        yield (
            f"{', '.join(names[one] for one in grouping.guessed)}: rarely observed; added at the end of the "
            "transaction that ran equally often"
        )


def known(transactions: Iterable[SeenTransaction], kinds: Mapping[int, TransactionPart]) -> Grouping:
    """Return exactly known transactions, restricted to replayed statements (those in ``kinds``).

    BEGIN and COMMIT are among the calls of blocks.
    """
    counts: Counter[tuple[bool, tuple[int, ...]]] = Counter()
    calls: dict[tuple[bool, tuple[int, ...]], list[float]] = {}
    for one in transactions:
        replayed = _joined(((step, times) for step, times in one.calls if step in kinds), kinds)
        if has_query((step for step, _ in replayed), kinds):
            kind = one.is_in_order, tuple(step for step, _ in replayed)
            counts[kind] += round(one.count)
            total = [round(times * one.count) for _, times in replayed]
            calls[kind] = [sum(both) for both in zip(calls.get(kind, [0] * len(total)), total, strict=True)]
    groups = []
    for (is_in_order, steps), count in counts.items():
        found = tuple(
            (step, times / count) for step, times in zip(steps, calls[is_in_order, steps], strict=True)
        )
        if not is_in_order:
            mean = dict(found)
            ordered = with_savepoints_first(steps, kinds)
            found = with_enough_savepoints({step: mean[step] for step in ordered}, kinds)
        groups.append(SeenTransaction(count, found, is_block=len(found) > 1, is_in_order=is_in_order))
    return Grouping(tuple(groups), untold=0, guessed=())


def _joined(
    calls: Iterable[tuple[int, float]], kinds: Mapping[int, TransactionPart]
) -> list[tuple[int, float]]:
    """Return calls with those of the same query joined, if no other call is between them."""
    joined: list[tuple[int, float]] = []
    for step, times in calls:
        if joined and joined[-1][0] == step and kinds[step] is TransactionPart.QUERY:
            joined[-1] = step, joined[-1][1] + times
        else:
            joined.append((step, times))
    return joined


def has_query(members: Iterable[int], kinds: Mapping[int, TransactionPart]) -> bool:
    """Whether statements can form a transaction: a savepoint alone cannot."""
    return any(kinds[one] is TransactionPart.QUERY for one in members)


def _host(calls: int, parts: Sequence[Part]) -> Part | None:
    """Return the block that ran as often as a statement was called; None if no block did."""
    nearest = _nearest(calls, parts)
    if nearest is None or abs(transactions_in(nearest) - calls) > _ALIKE * calls:
        return None
    return nearest


def _nearest(calls: int, parts: Sequence[Part]) -> Part | None:
    return min(parts, key=lambda part: abs(transactions_in(part) - calls), default=None)


def _group(part: Part, members: Sequence[int], kinds: Mapping[int, TransactionPart]) -> SeenTransaction:
    count = transactions_in(part)
    times = {one: rounded_times(part[one] / count) for one in with_savepoints_first(members, kinds)}
    return SeenTransaction(count, with_enough_savepoints(times, kinds), is_block=True)


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


def _ordered(part: Part, pairs: Mapping[tuple[int, int], int], last: Sequence[int]) -> list[int]:
    """Return statements in their most frequent order; those of ``last`` are at the end."""
    members = [one for one in part if one not in last]
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
    return [*ordered, *(one for one in last if one in part)]


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
    groups: Sequence[SeenTransaction], kinds: Mapping[int, TransactionPart], begun: int
) -> tuple[tuple[SeenTransaction, ...], int]:
    """Return groups and the number of blocks in none.

    A single kind of block gets all blocks begun if its statements were called often enough to be in each.
    """
    blocks = [one for one in groups if one.is_block]
    if len(blocks) == 1 and begun >= (1 - _SAME) * blocks[0].count:
        [only] = blocks
        if sum(its for _, its in only.calls) * only.count >= (1 - _SAME) * begun:
            times = {one: rounded_times(its * only.count / begun) for one, its in only.calls}
            whole = SeenTransaction(begun, with_enough_savepoints(times, kinds), is_block=True)
            return tuple(whole if one is only else one for one in groups), 0
    return tuple(groups), max(0, begun - round(sum(one.count for one in blocks)))
