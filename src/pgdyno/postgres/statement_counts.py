"""Counters of pg_stat_statements, transaction counts of a period, and observations of sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Traffic:
    """Transactions of all databases, and the execution time of their statements, in ms."""

    transactions: int
    active_ms: float

    def since(self, before: Traffic) -> Traffic:
        """Return the increase since ``before``; negative if the counters were reset in between."""
        return Traffic(self.transactions - before.transactions, self.active_ms - before.active_ms)


@dataclass(frozen=True)
class Sighting:
    """A session's open transaction, and the query id of its latest statement.

    ``is_between``: the session was idle in transaction, between two statements.
    """

    session: int
    transaction: str
    statement: int
    is_between: bool = False


@dataclass(frozen=True)
class SightedWait:
    """A session that waited for its client after a statement.

    ``is_alone``: it was idle, so the statement was its own transaction; otherwise idle in transaction.
    ``is_new``: the wait began between two samples of a burst.
    """

    statement: int
    is_alone: bool
    is_new: bool


@dataclass(frozen=True)
class SightedEnd:
    """An ended transaction: the query ids seen in it, and whether ROLLBACK ended it, not COMMIT."""

    statements: frozenset[int]
    is_rolled_back: bool


@dataclass(frozen=True)
class Ended:
    """Numbers of a database's transactions by their end. Failed ones are among those rolled back."""

    committed: int
    rolled_back: int

    @property
    def rolled_back_share(self) -> float:
        """The share of transactions that were rolled back; 0 without any transaction."""
        return self.rolled_back / max(1, self.committed + self.rolled_back)

    def since(self, before: Ended) -> Ended | None:
        """Return the increase since ``before``; None if the counts were reset."""
        more = Ended(self.committed - before.committed, self.rolled_back - before.rolled_back)
        return more if min(more.committed, more.rolled_back) >= 0 else None


@dataclass(frozen=True)
class Seen:
    """The server's counters for a statement; ``blocks`` were hit in shared buffers or read.

    WAL records measure the amount of changes. WAL bytes would also depend on the time since the last
    checkpoint.
    """

    calls: int
    time_ms: float
    rows: int
    blocks: int
    wal_records: int


@dataclass(frozen=True)
class StatementCounts:
    """Counters by query id, since the last reset, of statements that clients sent to a database.

    ``ended`` counts the database's transactions, as reported by its sessions about once a second.
    ``evicted`` is how often least-used statements were evicted (pg_stat_statements_info.dealloc).
    ``reset_at`` is the time of the last reset in the server's text form. Both are None before PostgreSQL 14.
    """

    seen: Mapping[int, Seen]
    plans: Mapping[int, int]
    nested_calls: int
    ended: Ended
    evicted: int | None
    reset_at: str | None


@dataclass(frozen=True)
class NewCounts:
    """The increase between two readings. ``is_evicting``: statements were evicted in between.

    ``ended`` is None if the database's counts were reset.
    """

    seen: Mapping[int, Seen]
    plans: Mapping[int, int]
    nested_calls: int
    ended: Ended | None
    is_evicting: bool


def difference(before: StatementCounts, after: StatementCounts) -> NewCounts | None:
    """Return the increase between two readings; None if the counters were reset in between."""
    nothing = Seen(0, 0.0, 0, 0, 0)
    changes = {one: _minus(seen, before.seen.get(one, nothing)) for one, seen in after.seen.items()}
    lost = [one for one, seen in changes.items() if seen.calls < 0]
    if before.reset_at != after.reset_at or (lost and before.evicted == after.evicted):
        return None
    changes |= {one: after.seen[one] for one in lost}  # evicted, and counted again from 0
    return NewCounts(
        {one: seen for one, seen in changes.items() if seen.calls},
        {one: count - before.plans.get(one, 0) for one, count in after.plans.items()},
        after.nested_calls - before.nested_calls,
        after.ended.since(before.ended),
        before.evicted != after.evicted,
    )


def merged(counts: NewCounts, same: Mapping[int, int]) -> NewCounts:
    """Return counts with those of equal statements added up; ``same`` maps an id to the one that stays."""
    seen: dict[int, Seen] = {}
    plans: Counter[int] = Counter()
    for one, its in counts.seen.items():
        key = same.get(one, one)
        seen[key] = _plus(seen[key], its) if key in seen else its
        plans[key] += counts.plans.get(one, 0)
    return replace(counts, seen=seen, plans=dict(plans))


def _plus(one: Seen, other: Seen) -> Seen:
    return _minus(one, _minus(Seen(0, 0.0, 0, 0, 0), other))


def _minus(one: Seen, other: Seen) -> Seen:
    return Seen(
        one.calls - other.calls,
        one.time_ms - other.time_ms,
        one.rows - other.rows,
        one.blocks - other.blocks,
        one.wal_records - other.wal_records,
    )
