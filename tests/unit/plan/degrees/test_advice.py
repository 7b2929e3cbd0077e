"""Advice on the number of workers: the shortest list that works."""

from __future__ import annotations

import pytest
from tests.unit.plan.test_explain_degree import BOTH_FREE, OneScan

from pgdyno.plan.explain_degree import degree_of


@pytest.mark.parametrize(
    ("planner", "workers", "statements"),
    [
        (OneScan(30_000), 2, []),
        (OneScan(30_000), 4, ["SET max_parallel_workers_per_gather = 4"]),
        (OneScan(30_000), 1, ["SET max_parallel_workers_per_gather = 1"]),
        (OneScan(30_000), 0, ["SET max_parallel_workers_per_gather = 0"]),
        (
            OneScan(30_000),
            6,
            ["SET max_parallel_workers_per_gather = 6", "ALTER TABLE s.t SET (parallel_workers = 6)"],
        ),
        (OneScan(30_000, option=1), 2, ["ALTER TABLE s.t SET (parallel_workers = 2)"]),
        (
            OneScan(1500, max_parallel_workers_per_gather="8"),
            3,
            ["SET parallel_setup_cost = 0", "ALTER TABLE s.t SET (parallel_workers = 3)"],
        ),
        (
            OneScan(30_000),
            9,
            [
                "SET max_parallel_workers_per_gather = 9",
                "ALTER TABLE s.t SET (parallel_workers = 9)",
                "SET max_parallel_workers = 9",
                "ALTER SYSTEM SET max_worker_processes = 10",
            ],
        ),
    ],
)
def test_the_advice_is_the_shortest_list(planner: OneScan, workers: int, statements: list[str]) -> None:
    advice = degree_of(planner.inquiry(), planner.plan({}), BOTH_FREE, workers).advice
    assert advice is not None
    assert [step.statement for step in advice.steps] == statements


def test_an_option_that_is_set_cannot_be_tried() -> None:
    planner = OneScan(30_000, option=1)
    advice = degree_of(planner.inquiry(), planner.plan({}), BOTH_FREE, 2).advice
    assert advice is not None
    assert advice.tried_workers is None
    assert [step.is_tried for step in advice.steps] == [False]
