"""Statements that are refused before any server is asked, and advice by a planner of the test's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext as does_not_raise
from typing import Any

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Fact
from pgdyno.plan.degrees.causes import Inquiry
from pgdyno.plan.degrees.degree_text import headline
from pgdyno.plan.explain_degree import check_statement, degree_of
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.parallel_degree import Hazard, Pools, Scan, Table
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
