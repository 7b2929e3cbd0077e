"""Similarity of a replay to the original: statements' shares of the server's counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pgdyno.model.experiments.captured import QUANTITIES, CapturedStatement, CapturedWorkload
from pgdyno.model.experiments.likeness import SESSIONS, Likeness, StatementLikeness
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.statements import Replayable, TransactionPart, as_counted, look_at

_COUNTED = 0.9  # of the calls: a transaction at the edge of a capture may be counted in part

_HARDLY = 0.01  # WAL records per call
_NOTHING = Seen(0, 0.0, 0, 0, 0)
_QUANTITIES: Mapping[str, Callable[[Seen], float]] = {
    "calls": lambda seen: seen.calls,
    "time": lambda seen: seen.time_ms,
    "rows": lambda seen: seen.rows,
    "blocks": lambda seen: seen.blocks,
    "WAL records": lambda seen: seen.wal_records,
}


def _hardly_write(seen: Iterable[Seen]) -> bool:
    each = tuple(seen)
    return sum(one.wal_records for one in each) <= _HARDLY * sum(one.calls for one in each)


@dataclass(frozen=True)
class ReplayedLoad:
    """The load of a replay: counts by statement name, and its completed and failed transactions.

    ``sessions`` are the original's and the replay's; None: the replay has as many as its rate needs.
    """

    seen: Mapping[str, Seen]
    transactions: int
    failed: int
    sessions: tuple[int, int] | None = None


def likeness(workload: CapturedWorkload, load: ReplayedLoad) -> Likeness:
    """Compare a replay with the original, by statement names.

    A quantity that is zero in the original, such as the rows of a load of writes, has likeness 1 if it is
    zero in the replay too, else 0. The few WAL records of a load that reads, of hint bits and pruning, count
    as none. Quantities unknown for the original are left out, as are BEGIN and COMMIT if the server did not
    count them: it does not if they are prepared.
    """
    uncounted = _uncounted(workload)
    original = {one.name: one.seen for one in workload.statements if one.name not in uncounted}
    replayed = {name: seen for name, seen in load.seen.items() if name not in uncounted}
    omitted = [one.seen for one in workload.omitted]
    by_quantity: dict[str, float] = {}
    shares = {}
    counted = [quantity for quantity in QUANTITIES if quantity in workload.counted]
    for quantity in counted:
        value = _QUANTITIES[quantity]
        ours = _shares({name: value(seen) for name, seen in original.items()}, sum(map(value, omitted)))
        theirs = _shares({name: value(seen) for name, seen in replayed.items()}, 0.0)
        shares[quantity] = ours, theirs
        by_quantity[quantity] = (
            sum(min(share, theirs.get(name, 0.0)) for name, share in ours.items())
            if any(ours.values())
            else float(not any(theirs.values()))
        )
    if "WAL records" in by_quantity and _hardly_write(original.values()) and _hardly_write(replayed.values()):
        by_quantity["WAL records"] = 1.0
    of_transactions = dict(_of_transactions(workload, load, original))
    for name, (before, after) in of_transactions.items():
        ratio = min(before, after) / max(before, after, 1.0)
        by_quantity[name] = ratio if name == SESSIONS else 1 - abs(before - after)
    return Likeness(
        by_quantity,
        tuple(
            StatementLikeness(
                name,
                {quantity: shares[quantity][0][name] for quantity in counted},
                {quantity: shares[quantity][1].get(name, 0.0) for quantity in counted},
                seen.time_ms / seen.calls if seen.calls else 0.0,
                replayed[name].time_ms / replayed[name].calls if name in replayed else None,
            )
            for name, seen in original.items()
        ),
        of_transactions,
        workload.assumed_share,
    )


def _of_transactions(
    workload: CapturedWorkload, load: ReplayedLoad, original: Mapping[str, Seen]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield quantities of transactions, each with the original's and the replay's value.

    How many transactions of the original failed or were empty is unknown: as if none did.
    """
    run = load.transactions + load.failed
    ended = workload.ended
    if ended is not None and run:
        _, rolled_back = _calls(workload, TransactionPart.ROLLBACK, original, load.seen)
        yield "rollbacks", (ended.rolled_back_share, min(1.0, (rolled_back + load.failed) / run))
        ours, theirs = _calls(workload, TransactionPart.BEGIN, original, load.seen)
        if ours:
            whole = max(1, ended.committed + ended.rolled_back)
            yield "transaction blocks", (min(1.0, ours / whole), min(1.0, theirs / run))
    yield "empty transactions", (0.0, _empty_share(workload))
    yield "failed transactions", (0.0, load.failed / run if run else 0.0)
    if workload.seconds and load.sessions is not None:
        yield SESSIONS, load.sessions


def _calls(
    workload: CapturedWorkload,
    part: TransactionPart,
    original: Mapping[str, Seen],
    replayed: Mapping[str, Seen],
) -> tuple[int, int]:
    """Return the calls of the statements with a role in transactions, in the original and in the replay."""
    names = [one.name for one in workload.statements if _part(one) is part]
    ours, theirs = (sum(seen[name].calls for name in names if name in seen) for seen in (original, replayed))
    return ours, theirs


def _part(statement: CapturedStatement) -> TransactionPart | None:
    look = look_at(statement.sql) if not statement.is_prepared else None
    return look.kind if isinstance(look, Replayable) else None


def _empty_share(workload: CapturedWorkload) -> float:
    """Return the share of replayed transactions without a query: calls with a fraction are drawn."""
    queries = {one.name for one in workload.statements if one.is_prepared}
    empty = (
        one.weight * math.prod(1 - min(1.0, call.times) for call in one.calls if call.statement in queries)
        for one in workload.transactions
    )
    return sum(empty) / (sum(one.weight for one in workload.transactions) or 1.0)


def seen_by_name(
    workload: CapturedWorkload, texts: Mapping[int, str], seen: Mapping[int, Seen]
) -> dict[str, Seen]:
    """Return the server's counts of the workload's statements, identified by their texts.

    Since PostgreSQL 18, statements that differ only in the length of a list are counted as one. Their counts
    are split by their shares of the original's calls.
    """
    same: defaultdict[str, list[CapturedStatement]] = defaultdict(list)
    for one in workload.statements:
        same[as_counted(one.sql)].append(one)
    found: dict[str, Seen] = {}
    for number, its in seen.items():
        members = same.get(as_counted(texts[number]), []) if number in texts else []
        calls = sum(one.seen.calls for one in members)
        for one in members:
            share = one.seen.calls / calls if calls else 1 / len(members)
            found[one.name] = _plus_share(found.get(one.name, _NOTHING), its, share)
    return found


def _plus_share(one: Seen, more: Seen, share: float) -> Seen:
    return Seen(
        one.calls + round(more.calls * share),
        one.time_ms + more.time_ms * share,
        one.rows + round(more.rows * share),
        one.blocks + round(more.blocks * share),
        one.wal_records + round(more.wal_records * share),
    )


def _uncounted(workload: CapturedWorkload) -> frozenset[str]:
    """Return BEGIN and COMMIT if fewer of them were counted than transactions ran."""
    made: Counter[str] = Counter()
    for transaction in workload.transactions:
        for call in transaction.calls:
            made[call.statement] += round(transaction.weight * call.times)
    return frozenset(
        one.name
        for one in workload.statements
        if not one.is_prepared and one.seen.calls < _COUNTED * made[one.name]
    )


def _shares(values: Mapping[str, float], omitted: float) -> dict[str, float]:
    whole = sum(values.values()) + omitted
    return {name: value / whole if whole else 0.0 for name, value in values.items()}
