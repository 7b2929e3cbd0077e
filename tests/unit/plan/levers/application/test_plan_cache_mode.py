"""plan_cache_mode and update_process_title: planned for scratch servers alone, each refusal with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact, unknown
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import PlannedStatement, PlanningShare, StatementPlan, WorkloadStatements

LEVERS = levers.load()
SQL = "SELECT c FROM t WHERE id BETWEEN $1 AND $2"
ALIKE = ("Index Scan on t (t_pkey)",)
RANGE = PlannedStatement(
    name="range",
    sql=SQL,
    calls=1.0,
    customs=(StatementPlan(ALIKE, (100.0,), 12.0, 10),),
    generics=(StatementPlan(ALIKE, (1500.0,), 80.0, 10),),
    tables=("t",),
    has_partitions=False,
    is_planned_anew=True,
    planning_ms=0.1,
    execution_ms=0.3,
)
POINT = replace(RANGE, name="point", sql="SELECT c FROM t WHERE id = $1", is_planned_anew=False, calls=10.0)


def plan_of(name: str, *statements: PlannedStatement, server: Server | None = None) -> Plan:
    found = (WorkloadStatements("reads", statements),)
    request = PlanRequest(statements=Fact(found, "a test"))
    return make_plan(host_of(), server or server_of(), request, levers={name: LEVERS[name]})


def reason(*statements: PlannedStatement) -> str:
    plan = plan_of("plan_cache_mode", *statements)
    assert plan.lines == ()
    return plan.skipped[0].reason


def advice(server: Server, name: str = "plan_cache_mode") -> str:
    plan = make_plan(host_of(), server, PlanRequest(), levers={name: LEVERS[name]})
    assert plan.lines == ()
    return plan.skipped[0].reason


def test_statements_that_are_planned_anew_are_planned_once() -> None:
    plan = plan_of("plan_cache_mode", replace(POINT, calls=1.0, execution_ms=0.1), RANGE)
    assert plan.settings == {"plan_cache_mode": "force_generic_plan"}
    # 0.1 ms of planning in 0.1 + 0.3 + 0.1 ms.
    assert plan.lines[0].reason == (
        "reads: 1 of 2 statements (range) are planned at every execution, which takes 20\xa0% of the "
        "server's time for reads"
    )
    assert plan.without("plan_cache_mode").lines == ()
    assert plan.without("jit") == plan


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"has_partitions": True}, f'partitions are pruned by value: "{SQL}" of reads'),
        (
            {"sql": "SELECT c FROM t ORDER BY c LIMIT $1"},
            'LIMIT with ORDER BY needs a custom plan: "SELECT c FROM t ORDER BY c LIMIT $1" of reads',
        ),
        (
            {"customs": (*RANGE.customs, StatementPlan(("Seq Scan on t",), (9000.0,), 100.0, 10))},
            f'a custom plan has Seq Scan on t, the generic plan Index Scan on t (t_pkey): "{SQL}" of reads',
        ),
        (
            {
                "customs": (StatementPlan(("Sort", *ALIKE), (100.0, 100.0), 12.0, 10),),
                "generics": (StatementPlan(("Sort", "  Seq Scan on t"), (100.0, 100.0), 12.0, 10),),
            },
            f'a custom plan has Index Scan on t (t_pkey), the generic plan Seq Scan on t: "{SQL}" of reads',
        ),
        ({"tables": ("t", "u")}, f'row estimates differ by a factor of 15: "{SQL}" of reads'),
        (
            {"generics": (StatementPlan(ALIKE, (1500.0,), 80.0, 12),)},
            f'the generic plan reads 12 blocks instead of 10: "{SQL}" of reads',
        ),
        (
            {"is_planned_anew": False},
            "the server already keeps a generic plan for every prepared statement",
        ),
        (
            {"planning_ms": 0.01},
            "repeated planning takes 3.2\xa0% of the time of reads, less than 5\xa0%",  # 0.01 / 0.31
        ),
    ],
)
def test_each_refusal_has_its_reason(change: dict[str, object], said: str) -> None:
    assert reason(replace(RANGE, **change)) == said  # type: ignore[arg-type]


def test_a_danger_in_one_workload_is_one_for_all() -> None:
    found = (
        WorkloadStatements("reads", (RANGE,)),
        WorkloadStatements("others", (replace(POINT, has_partitions=True),)),
    )
    request = PlanRequest(statements=Fact(found, "a test"))
    plan = make_plan(host_of(), server_of(), request, levers={"plan_cache_mode": LEVERS["plan_cache_mode"]})
    assert plan.skipped[0].reason == f'partitions are pruned by value: "{POINT.sql}" of others'


def test_statements_that_are_not_known_are_not_guessed() -> None:
    request = PlanRequest(statements=unknown("they are in scripts", "a test"))
    plan = make_plan(host_of(), server_of(), request, levers={"plan_cache_mode": LEVERS["plan_cache_mode"]})
    assert (plan.lines, plan.skipped[0].reason) == ((), "they are in scripts")


def test_a_value_that_somebody_chose_is_left_alone() -> None:
    chosen = server_of(changes={"plan_cache_mode": "force_custom_plan"})
    assert plan_of("plan_cache_mode", RANGE, server=chosen).skipped[0].reason == (
        "explicitly set to force_custom_plan"
    )


def test_a_running_server_gets_advice_from_what_it_has_counted() -> None:
    server = replace(server_of(), planning=Fact(PlanningShare(80, 100, 25.0, 75.0), "pg_stat_statements"))
    assert advice(server) == (
        "planning takes 25\xa0% of the statements' time (80 plans in 100 calls, pg_stat_statements). If "
        "the statements are prepared by name, try it for one role or database: ALTER ROLE name SET "
        "plan_cache_mode = "
        "force_generic_plan; to undo: ALTER ROLE name RESET plan_cache_mode"
    )
    little = replace(server, planning=Fact(PlanningShare(80, 100, 1.0, 99.0), "pg_stat_statements"))
    assert advice(little) == (
        "planning takes 1\xa0% of the statements' time (80 plans in 100 calls, pg_stat_statements): too "
        "little to gain"
    )


def test_a_running_server_that_counts_nothing_is_told_how() -> None:
    server = replace(server_of(), planning=unknown("pg_stat_statements.track_planning is off", "a test"))
    assert advice(server) == (
        "the planning time is not known (pg_stat_statements.track_planning is off); "
        "pg_stat_statements.track_planning = on measures it. If statements are prepared by name and "
        "planning takes 5\xa0% or more, try it for one role or database: ALTER ROLE name SET "
        "plan_cache_mode = force_generic_plan; to undo: ALTER ROLE name RESET plan_cache_mode"
    )


def test_process_titles_stay_where_somebody_may_look_at_them() -> None:
    assert plan_of("update_process_title", RANGE).settings == {"update_process_title": "off"}
    assert advice(server_of(), "update_process_title") == (
        "off saves three writes per statement, but ps and top no longer show a backend's activity"
    )
    off = server_of(changes={"update_process_title": "off"})
    assert plan_of("update_process_title", server=off).skipped[0].reason == "already off"
