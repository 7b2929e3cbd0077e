"""How statements are sent, by counts of calls and plans."""

from __future__ import annotations

import pytest

from pgdyno.capture.protocol import protocol_of
from pgdyno.model.experiments.captured import Seen
from pgdyno.model.servers.statement_counts import NewCounts


def counts(*calls_and_plans: tuple[int, int]) -> NewCounts:
    seen = {one: Seen(calls, 1.0, 0, 0, 0) for one, (calls, _) in enumerate(calls_and_plans)}
    plans = {one: plans for one, (_, plans) in enumerate(calls_and_plans)}
    return NewCounts(seen, plans, 0, 0, is_evicting=False)


@pytest.mark.parametrize(
    ("calls_and_plans", "protocol"),
    [
        ([(1000, 12), (400, 400)], "prepared"),
        ([(1000, 1000), (400, 12)], "extended"),
        ([(1000, 1000)], "extended"),
        ([(1000, 0)], None),
        ([(9, 1)], None),
    ],
)
def test_most_calls_decide(calls_and_plans: list[tuple[int, int]], protocol: str | None) -> None:
    found = counts(*calls_and_plans)
    assert protocol_of(found, found.seen) == protocol


def test_only_queries_count() -> None:
    assert protocol_of(counts((1000, 1000), (5000, 7)), [0]) == "extended"
