"""Causes of a number of workers: each limit is found by changing it alone."""

from __future__ import annotations

from tests.unit.plan.test_explain_degree import BOTH_FREE, OneScan

from pgdyno.plan.degrees.degree_text import headline
from pgdyno.plan.explain_degree import degree_of
from pgdyno.postgres.parallel_degree import Limit


def limits(planner: OneScan, workers: int | None = None) -> tuple[int, list[Limit]]:
    inquiry = planner.inquiry()
    degree = degree_of(inquiry, planner.plan({}), BOTH_FREE, workers)
    return degree.planned, [cause.limit for cause in degree.causes]


def test_each_limit_is_found_by_changing_it_alone() -> None:
    assert limits(OneScan(5000)) == (2, [Limit.TABLE_SIZE])
    assert limits(OneScan(30_000)) == (2, [Limit.CAP])
    assert limits(OneScan(30_000, option=1)) == (1, [Limit.RELOPTION])
    assert limits(OneScan(30_000, option=0)) == (0, [Limit.RELOPTION])
    assert limits(OneScan(30_000, max_parallel_workers_per_gather="0")) == (0, [Limit.CAP])
    assert limits(OneScan(30_000, parallel_setup_cost="99999")) == (0, [Limit.SETUP_COST])
    assert limits(OneScan(500)) == (0, [Limit.TABLE_SIZE, Limit.SETUP_COST])


def test_what_nobody_can_explain_is_said_to_be_so() -> None:
    planner = OneScan(30_000, is_shared=False)
    degree = degree_of(planner.inquiry(), planner.plan({}), BOTH_FREE, 4)
    assert headline(degree) == "0 workers planned: an undetermined limit"
    assert degree.advice is not None
    assert not degree.advice.is_certain
    assert degree.advice.obstacle is not None
    assert degree.advice.obstacle.startswith(
        "no limit that can be tested gives this number when changed; an undetermined limit: "
    )
