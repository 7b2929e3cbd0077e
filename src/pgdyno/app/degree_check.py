"""Looks whether a statement really has the parallel workers that a workload says, before it is timed.

It is run once with EXPLAIN ANALYZE, in a session set as those of the load: what a plan asks for, and what was
launched. It also warms up. EXPLAIN ANALYZE itself slows a query down, so that nothing is timed by it.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg

from pgdyno.app.arm import Arm
from pgdyno.experiments.parallel_plan import Plan, nodes, planned_workers
from pgdyno.model.errors import MeasurementError, PgdynoError, UsageError
from pgdyno.model.workload import Workload

_EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) "


def require_degree(arm: Arm, workload: Workload) -> None:
    """Run a workload's statement once on an arm's server; nothing where it is to have no certain degree.

    Raises: UsageError with the server's words if the statement fails; MeasurementError if it is planned with
    another number of workers, or not all of them were launched.
    """
    if workload.sql is None or workload.workers is None:
        return
    plan = _run(arm, workload, workload.sql)
    planned = planned_workers(plan)
    if planned != workload.workers:
        raise MeasurementError(
            f"{workload.title}: the plan has {planned} workers on the server of {arm.variant.name}",
            hint="pgdyno explain-degree says what decides the number of workers of a query",
        )
    launched = max(
        (node["Workers Launched"] for node in nodes(plan) if "Workers Launched" in node), default=0
    )
    if launched != planned:
        raise MeasurementError(
            f"{workload.title}: only {launched} of {planned} workers were launched on the server of "
            f"{arm.variant.name}",
            hint="nothing else may use parallel workers of this server meanwhile",
        )


def _run(arm: Arm, workload: Workload, sql: str) -> Plan:
    with closing(arm.connect()) as connection:
        try:
            for name, value in workload.session_settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            row = connection.execute((_EXPLAIN + sql).encode()).fetchone()
        except psycopg.OperationalError as error:
            raise _failed(workload, error) if error.sqlstate else arm.lost(error) from error
        except psycopg.Error as error:
            raise _failed(workload, error) from error
    assert row is not None  # noqa: S101 — EXPLAIN always has a row
    document: list[dict[str, Any]] = row[0]
    plan: Plan = document[0]["Plan"]
    return plan


def _failed(workload: Workload, error: psycopg.Error) -> PgdynoError:
    said = error.diag.message_primary or str(error).strip()
    return UsageError(
        f"the query fails ({workload.title})",
        detail="; ".join(filter(None, (said, error.diag.message_detail))),
        hint="give a query that only reads, on tables that are there",
    )
