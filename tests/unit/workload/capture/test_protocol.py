"""How statements are sent, by counts of calls and plans."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.captured import Protocol
from pgdyno.postgres.statement_counts import Ended, NewCounts, Seen
from pgdyno.workload.capture.protocol import note_on_protocols, protocol_of, protocol_of_calls


def counts(*calls_and_plans: tuple[int, int]) -> NewCounts:
    seen = {one: Seen(calls, 1.0, 0, 0, 0) for one, (calls, _) in enumerate(calls_and_plans)}
    plans = {one: plans for one, (_, plans) in enumerate(calls_and_plans)}
    return NewCounts(seen, plans, 0, Ended(0, 0), is_evicting=False)


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


_THREE = "50 % without a name, 30 % as simple queries, 20 % prepared by name; all are replayed without a name"


@pytest.mark.parametrize(
    ("calls", "protocol", "note"),
    [
        ({"simple": 7}, "simple", ""),
        ({"extended": 1, "prepared": 96, "simple": 0}, "prepared", ""),
        (
            {"simple": 3, "prepared": 2, "extended": 5},
            "extended",
            _THREE,
        ),
        (
            {"prepared": 1, "simple": 3},
            "simple",
            "75 % as simple queries, 25 % prepared by name; all are replayed as simple queries",
        ),
        ({}, None, ""),
        ({"simple": 0}, None, ""),
    ],
)
def test_calls_in_a_log_say_how_they_were_sent(
    calls: dict[Protocol, int], protocol: str | None, note: str
) -> None:
    assert protocol_of_calls(calls) == protocol
    said = (note_on_protocols(calls) or "").replace("\N{NO-BREAK SPACE}", " ")
    assert said == (note and f"calls used several protocols: {note}")
