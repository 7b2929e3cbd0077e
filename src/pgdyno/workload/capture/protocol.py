"""How an application sends its statements, as far as counts of plans or a log tell.

A statement that is prepared by name is planned at most of its first executions, and then has one plan for all
values, unless plans for each are better. One that is sent without a name is planned whenever it is called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pgdyno.base import numbers
from pgdyno.model.experiments.captured import Protocol
from pgdyno.postgres.statement_counts import NewCounts

_FEW = 10  # calls: fewer do not tell
_OTHERWISE = 0.05  # of the calls: arbitrary; a session may send its first ones otherwise
_WORDS: Mapping[Protocol, str] = {
    "simple": "as simple queries",
    "extended": "without a name",
    "prepared": "prepared by name",
}
_KEPT = 0.5  # plans to a call: a statement with fewer is prepared by name

UNKNOWN_PROTOCOL = (
    "how statements are sent is not known (pg_stat_statements.track_planning counts plans): taken as "
    "prepared by name"
)

SCRIPT_PROTOCOL = (
    "how pgbench sends a script's statements is its option --protocol, and not in the script: taken as "
    "prepared by name"
)


def protocol_of(counted: NewCounts, queries: Collection[int]) -> Protocol | None:
    """Return how most calls of queries were sent; None if no plan was counted.

    What is prepared and planned at each execution cannot be told from what is sent without a name.
    """
    calls = {one: counted.seen[one].calls for one in queries if counted.seen[one].calls >= _FEW}
    plans = {one: counted.plans.get(one, 0) for one in calls}
    if not any(plans.values()):
        return None
    prepared = sum(count for one, count in calls.items() if plans[one] < _KEPT * count)
    return "prepared" if prepared > sum(calls.values()) / 2 else "extended"


def protocol_of_calls(calls: Mapping[Protocol, int]) -> Protocol | None:
    """Return how most calls were sent; None if there was none."""
    known = {one: count for one, count in calls.items() if count}
    return max(known, key=lambda one: known[one], default=None)


def note_on_protocols(calls: Mapping[Protocol, int]) -> str | None:
    """Return a note on the ways in which calls were sent; None if hardly any was sent otherwise than most."""
    protocol, whole = protocol_of_calls(calls), sum(calls.values())
    if protocol is None or calls[protocol] > whole * (1 - _OTHERWISE):
        return None
    by_calls = sorted(calls.items(), key=lambda each: -each[1])
    said = ", ".join(f"{numbers.share(count / whole, 0)} {_WORDS[one]}" for one, count in by_calls if count)
    return f"calls were sent in several ways: {said}; all are replayed {_WORDS[protocol]}"
