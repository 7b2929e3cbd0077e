"""Statements that are refused before any server is asked, and advice by a planner of the test's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext as does_not_raise
from typing import Any

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Fact
from pgdyno.plan.degrees.degree_text import headline
from pgdyno.plan.degrees.inquiry import Inquiry
from pgdyno.plan.explain_degree import check_statement, degree_of
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.parallel_degree import Hazard, Limit, Pools, Scan, Table
from pgdyno.postgres.planner.parallel_plan import Plan

BOTH_FREE = Pools(8, 8, Fact(0, "test"), Fact(1, "test"))
VALUES = {
    "server_version": "18.6",
    "max_parallel_workers_per_gather": "2",
    "min_parallel_table_scan_size": "1024",
    "min_parallel_index_scan_size": "64",
    "parallel_setup_cost": "1000",
    "parallel_tuple_cost": "0.1",
    "enable_parallel_append": "on",
    "debug_parallel_query": "off",
    "max_parallel_workers": "8",
    "max_worker_processes": "8",
    "parallel_leader_participation": "on",
}


class OneScan:
    """A planner of one table's scan. Its rule is the manual's: 8 MB, and one worker more per tripling."""

    def __init__(
        self, pages: int, *, option: int | None = None, is_shared: bool = True, **values: str
    ) -> None:
        self.table = Table("s.t", False, "r", False, pages, option)  # noqa: FBT003 — one table
        self.is_shared = is_shared
        self.values = {**VALUES, **values}
        self.asked = 0

    def plan(self, changed: Mapping[str, str]) -> Plan:
        self.asked += 1
        values = {**self.values, **changed}
        workers = min(self.by_rule(values), int(values["max_parallel_workers_per_gather"]))
        serial = self.table.pages * 1.75
        gain = self.table.pages * 0.75 * (1 - 1 / (workers + 1))
        if not self.is_shared or workers == 0 or gain <= float(values["parallel_setup_cost"]):
            return self.scan(is_shared=False) | {"Total Cost": serial}
        child = self.scan(is_shared=True)
        more: dict[str, Any] = {"Workers Planned": workers, "Plans": [child], "Plan Rows": 3}
        cost = serial - gain + float(values["parallel_setup_cost"])
        return {"Node Type": "Gather", "Parallel Aware": False, "Total Cost": cost, **more}

    def by_rule(self, values: Mapping[str, str]) -> int:
        if self.table.parallel_workers is not None:
            return self.table.parallel_workers
        first = max(int(values["min_parallel_table_scan_size"]), 1)
        return sum(first * 3**n <= self.table.pages for n in range(20))

    def scan(self, *, is_shared: bool) -> dict[str, Any]:
        named = {"Relation Name": "t", "Schema": "s", "Alias": "t", "Parent Relationship": "Outer"}
        return {"Node Type": "Seq Scan", "Parallel Aware": is_shared, **named}

    def inquiry(self, hazards: tuple[Hazard, ...] = ()) -> Inquiry:
        def tables(scans: Iterable[Scan]) -> Mapping[str, Table]:
            return {scan.relation: self.table for scan in scans}

        return Inquiry(self.plan, tables, lambda _: hazards, {k: guc(k, v) for k, v in self.values.items()})


def guc(name: str, value: str) -> Guc:
    unit = "8kB" if name.endswith("scan_size") else None
    return Guc(name, value, unit, "string", "user", "default", None, None)


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


class Unexplained(OneScan):
    """Workers of an unknown scan, such as an extension's: only the cap can be determined."""

    def plan(self, changed: Mapping[str, str]) -> Plan:
        cap = int({**self.values, **changed}["max_parallel_workers_per_gather"])
        more: dict[str, Any] = {"Workers Planned": min(cap, 4), "Plans": [], "Plan Rows": 3}
        return {"Node Type": "Gather", "Parallel Aware": False, "Total Cost": 1.0, **more}


def test_what_was_not_found_out_does_not_keep_settings_from_being_tried() -> None:
    planner = Unexplained(0, max_parallel_workers_per_gather="6")
    degree = degree_of(planner.inquiry(), planner.plan({}), BOTH_FREE, 3)
    assert headline(degree) == "4 workers planned: an undetermined limit"
    assert degree.advice is not None
    assert [step.statement for step in degree.advice.steps] == ["SET max_parallel_workers_per_gather = 3"]
    beyond = degree_of(planner.inquiry(), planner.plan({}), BOTH_FREE, 5).advice
    assert beyond is not None
    assert (beyond.steps, beyond.is_certain) == ((), False)


def test_a_function_is_named_where_nothing_else_helps() -> None:
    planner = OneScan(30_000, is_shared=False)
    hazard = Hazard("f", ("s.f(integer)",), is_unsafe=True, is_builtin=False, is_certain=True)
    degree = degree_of(planner.inquiry((hazard,)), planner.plan({}), BOTH_FREE, None)
    assert headline(degree) == "0 workers planned: the parallel-unsafe function s.f(integer) decided"


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


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("", "there is no statement"),
        (" -- nothing", "there is no statement"),
        ("SELECT 1; SELECT 2", "there is more than one statement"),
        ("SELECT $1", "the statement has parameters such as $1"),
        ("DECLARE c CURSOR FOR SELECT 1", "a cursor is never planned with workers"),
        ("EXECUTE p", "a prepared statement exists only in its own session"),
        ("refresh materialized view v", "PostgreSQL cannot explain REFRESH"),
        ("EXPLAIN SELECT 1", "the statement is already an EXPLAIN"),
        ("create UNIQUE index ON t (a)", "an index build has no plan"),
        ("/* all */ REINDEX TABLE t", "an index build has no plan"),
    ],
)
def test_what_has_no_degree_is_refused(statement: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_statement(statement)
    assert caught.value.message == message


def test_what_only_looks_like_it_is_let_pass() -> None:
    with does_not_raise():
        for statement in (
            "SELECT '$1; SELECT 2'",
            "TABLE t;",
            "WITH x AS (SELECT 1) TABLE x",
            "VALUES (1)",
            "CREATE TABLE index AS SELECT 1",
            "TABLE reindexed",
        ):
            check_statement(statement)
