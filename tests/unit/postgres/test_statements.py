"""Plans of prepared statements: what planning costs, and how far custom and generic plans are apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.postgres.statements import (
    CommitGrouping,
    PlannedStatement,
    PlanningShare,
    StatementPlan,
    WorkloadStatements,
)

GENERIC = StatementPlan(("Index Scan",), (10.0,), 8.0, blocks=4)
CUSTOM = StatementPlan(("Seq Scan",), (0.1,), 9.0, blocks=6)
READ = PlannedStatement(
    name="s1",
    sql="SELECT 1",
    calls=2.0,
    customs=(GENERIC, CUSTOM),
    generics=(GENERIC, GENERIC),
    tables=(),
    has_partitions=False,
    is_planned_anew=True,
    planning_ms=0.25,
    execution_ms=0.5,
)


def test_the_share_of_planning_is_that_of_reads_which_are_planned_anew() -> None:
    reused = replace(READ, name="s2", is_planned_anew=False)
    writing = replace(READ, name="s3", execution_ms=None, planning_ms=100.0)
    workload = WorkloadStatements("w", (READ, reused, writing))
    # 2 calls of 0.25 ms planning; 4 calls of 0.5 ms execution
    assert workload.planning_share == pytest.approx(0.5 / 2.5)
    assert workload.planned_anew == ("s1", "s3")
    assert WorkloadStatements("w", (writing,)).planning_share == 0.0
    assert PlanningShare(1, 1, 3.0, 1.0).share == 0.75
    assert PlanningShare(0, 0, 0.0, 0.0).share == 0.0


def test_a_custom_plan_may_have_another_shape_and_other_estimates() -> None:
    assert READ.other_shape == CUSTOM
    assert READ.estimate_ratio == 10.0  # less than a row counts as one
    assert READ.blocks == (10, 8)
    assert replace(READ, execution_ms=None).blocks is None
    alike = replace(READ, customs=(GENERIC,))
    assert (alike.other_shape, alike.estimate_ratio) == (None, 1.0)


def test_the_text_of_a_users_own_statement_is_not_shown() -> None:
    assert READ.shown == '"SELECT 1"'
    assert replace(READ, is_private=True).shown == "s1"


def test_without_a_flush_all_commits_share_none() -> None:
    assert CommitGrouping("w", 4, 100, 40, 500.0).commits_per_flush == 2.5
    assert CommitGrouping("w", 4, 100, 0, 500.0).commits_per_flush == 100
