"""Detection of an application's query protocol, from counts of plans or a log.

A named prepared statement is planned at its first executions, and then uses a generic plan, unless custom
plans are cheaper. An unnamed statement is planned at every call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pgdyno.base import numbers
from pgdyno.model.experiments.captured import Protocol
from pgdyno.postgres.statement_counts import NewCounts

_FEW = 10  # calls: fewer are not conclusive
_OTHERWISE = 0.05  # of the calls: arbitrary; a session may send its first ones by a different protocol
_WORDS: Mapping[Protocol, str] = {
    "simple": "as simple queries",
    "extended": "without a name",
    "prepared": "prepared by name",
}
_KEPT = 0.5  # plans per call: a statement with fewer is prepared by name

UNKNOWN_PROTOCOL = (
    "the query protocol is unknown without pg_stat_statements.track_planning = on: statements are assumed to "
    "be prepared by name"
)

SCRIPT_PROTOCOL = (
    "the query protocol is pgbench's option --protocol and not in the script: statements are assumed to be "
    "prepared by name"
)


def protocol_of(counted: NewCounts, queries: Collection[int]) -> Protocol | None:
    """Return the protocol of most calls of queries; None if no plan was counted.

    A named statement planned at each execution is indistinguishable from an unnamed one.
    """
    calls = {one: counted.seen[one].calls for one in queries if counted.seen[one].calls >= _FEW}
    plans = {one: counted.plans.get(one, 0) for one in calls}
    if not any(plans.values()):
        return None
    prepared = sum(count for one, count in calls.items() if plans[one] < _KEPT * count)
    return "prepared" if prepared > sum(calls.values()) / 2 else "extended"


def protocol_of_calls(calls: Mapping[Protocol, int]) -> Protocol | None:
    """Return the protocol of most calls; None without calls."""
    known = {one: count for one, count in calls.items() if count}
    return max(known, key=lambda one: known[one], default=None)


def note_on_protocols(calls: Mapping[Protocol, int]) -> str | None:
    """Return a note on the protocols of calls; None if nearly all calls used the same one."""
    protocol, whole = protocol_of_calls(calls), sum(calls.values())
    if protocol is None or calls[protocol] > whole * (1 - _OTHERWISE):
        return None
    by_calls = sorted(calls.items(), key=lambda each: -each[1])
    shares = ", ".join(f"{numbers.share(count / whole, 0)} {_WORDS[one]}" for one, count in by_calls if count)
    return f"calls used several protocols: {shares}; all are replayed {_WORDS[protocol]}"
