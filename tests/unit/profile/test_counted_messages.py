"""Messages whose time the server counts, by the functions of PostgreSQL that stacks were sampled in."""

from __future__ import annotations

import pytest

from pgdyno.profile.parts import uncounted_share


@pytest.mark.parametrize(
    "stack",
    [
        "base_yyparse raw_parser pg_parse_query PostgresMain BackendMain main",
        "transformStmt parse_analyze_varparams pg_analyze_and_rewrite_varparams PostgresMain main",
        "standard_planner planner pg_plan_queries BuildCachedPlan GetCachedPlan PostgresMain main",
        "ExecutorStart PortalStart PostgresMain main",
        "transformStmt pg_analyze_and_rewrite_varparams.constprop.0 PostgresMain main",
        "printtup SendRowDescriptionMessage PostgresMain main",  # Describe, between Bind and Execute
        "palloc exec_parse_message PostgresMain main",
        "planner GetCachedPlan exec_bind_message.isra.0 PostgresMain main",
    ],
)
def test_parse_and_bind_are_not(stack: str) -> None:
    assert uncounted_share([stack.split()]) == 1


@pytest.mark.parametrize(
    "stack",
    [
        "base_yyparse raw_parser pg_parse_query exec_simple_query PostgresMain main",
        "planner pg_plan_queries [unknown] PostgresMain main",  # a stripped program, simple protocol
        "standard_planner GetCachedPlan ExecuteQuery standard_ProcessUtility PortalRun PostgresMain main",
        "_bt_search IndexNext standard_ExecutorRun PortalRun PostgresMain BackendMain main",
        "secure_read pq_recvbuf PostgresMain main",
    ],
)
def test_all_else_is(stack: str) -> None:
    assert uncounted_share([stack.split()]) == 0


def test_stacks_that_tell_no_message_leave_it_unknown() -> None:
    known, unknown = "GetCachedPlan PostgresMain main", "XLogWrite [unknown]"
    assert uncounted_share([unknown.split(), ["PostgresMain", "main"], []]) is None
    assert uncounted_share([unknown.split(), known.split()]) == 1
    assert uncounted_share([]) is None
