"""How an application sends its statements, as far as counts of plans tell.

A statement that is prepared by name is planned at most of its first executions, and then has one plan for all
values, unless plans for each are better. One that is sent without a name is planned whenever it is called.
"""

from __future__ import annotations

from collections.abc import Collection

from pgdyno.model.experiments.captured import Protocol
from pgdyno.model.servers.statement_counts import NewCounts

_FEW = 10  # calls: fewer do not tell
_KEPT = 0.5  # plans to a call: a statement with fewer is prepared by name

UNKNOWN_PROTOCOL = (
    "how statements are sent is not known (pg_stat_statements.track_planning counts plans): taken as "
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
