"""Similarity of a replay to the original: statements' shares of the server's counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from pgdyno.model.experiments.captured import QUANTITIES, CapturedStatement, CapturedWorkload
from pgdyno.model.experiments.likeness import Likeness, StatementLikeness
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.statements import as_counted

_COUNTED = 0.9  # of the calls: a transaction at the edge of a capture may be counted in part

_NOTHING = Seen(0, 0.0, 0, 0, 0)
_QUANTITIES: Mapping[str, Callable[[Seen], float]] = {
    "calls": lambda seen: seen.calls,
    "time": lambda seen: seen.time_ms,
    "rows": lambda seen: seen.rows,
    "blocks": lambda seen: seen.blocks,
    "WAL records": lambda seen: seen.wal_records,
}


def likeness(workload: CapturedWorkload, replayed: Mapping[str, Seen]) -> Likeness:
    """Compare a replay with the original, by statement names.

    A quantity that is zero in the original, such as the WAL of a read-only load, has likeness 1 if it is zero
    in the replay too, else 0. Quantities unknown for the original are left out, as are BEGIN and COMMIT if
    the server did not count them: it does not if they are prepared.
    """
    uncounted = _uncounted(workload)
    original = {one.name: one.seen for one in workload.statements if one.name not in uncounted}
    replayed = {name: seen for name, seen in replayed.items() if name not in uncounted}
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
    )


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
