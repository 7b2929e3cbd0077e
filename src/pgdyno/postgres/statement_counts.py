"""The counts of pg_stat_statements; transactions of a period, and sightings of sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Traffic:
    """Transactions of all databases, and how long their statements were executed for, in ms."""

    transactions: int
    active_ms: float

    def since(self, before: Traffic) -> Traffic:
        """Return the increase since ``before``; below 0 if the counters were reset meanwhile."""
        return Traffic(self.transactions - before.transactions, self.active_ms - before.active_ms)


@dataclass(frozen=True)
class Sighting:
    """The transaction that a session was in, and the id of its last statement there.

    ``is_between``: that statement was over, and the transaction was not.
    """

    session: int
    transaction: str
    statement: int
    is_between: bool = False


@dataclass(frozen=True)
class Seen:
    """The server's counts of a statement; ``blocks`` were found in shared buffers or read.

    Records of WAL say how much was changed; bytes depend on when the last checkpoint was.
    """

    calls: int
    time_ms: float
    rows: int
    blocks: int
    wal_records: int


@dataclass(frozen=True)
class StatementCounts:
    """Counts by statement id, since they were last reset, of statements that clients sent to a database.

    ``transactions`` are those of the database, as sessions have reported them: about once a second.
    ``evicted`` is how often the least used statements were forgotten because there were too many;
    ``reset_at`` is an instant as the server writes it. None: the server does not say (before PostgreSQL 14).
    """

    seen: Mapping[int, Seen]
    plans: Mapping[int, int]
    nested_calls: int
    transactions: int
    evicted: int | None
    reset_at: str | None


@dataclass(frozen=True)
class NewCounts:
    """The counts between two readings. ``is_evicting``: statements were forgotten meanwhile."""

    seen: Mapping[int, Seen]
    plans: Mapping[int, int]
    nested_calls: int
    transactions: int
    is_evicting: bool


def difference(before: StatementCounts, after: StatementCounts) -> NewCounts | None:
    """Return the counts between two readings; None if the counts were reset meanwhile."""
    nothing = Seen(0, 0.0, 0, 0, 0)
    changes = {one: _minus(seen, before.seen.get(one, nothing)) for one, seen in after.seen.items()}
    lost = [one for one, seen in changes.items() if seen.calls < 0]
    if before.reset_at != after.reset_at or (lost and before.evicted == after.evicted):
        return None
    changes |= {one: after.seen[one] for one in lost}  # forgotten, and counted anew
    return NewCounts(
        {one: seen for one, seen in changes.items() if seen.calls},
        {one: count - before.plans.get(one, 0) for one, count in after.plans.items()},
        after.nested_calls - before.nested_calls,
        after.transactions - before.transactions,
        before.evicted != after.evicted,
    )


def merged(counts: NewCounts, same: Mapping[int, int]) -> NewCounts:
    """Return counts with those of several ids added up under one; ``same`` says which."""
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
