"""Parallel workers: required of a statement before timing, launched, and planned.

A statement is run once, in a session set as those of the load; that also warms up. A query is run with
EXPLAIN ANALYZE, which says what its plan asks for and what was launched. It slows a query down, so that
nothing is timed by it. All of it is rolled back: EXPLAIN ANALYZE runs CREATE TABLE AS and the like even in
a read-only transaction, where the statement by itself would be refused.

What builds an index has no plan, and the server counts its workers nowhere (pg_stat_database has those of
Gather nodes alone); with trace_sort each process that takes part in the sort says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import psycopg

from pgdyno.base.errors import MeasurementError, PgdynoError, ServerError, UsageError
from pgdyno.load.query_session import QuerySession
from pgdyno.measure.arenas.arm import Arm, difference, meter_values, read_meters
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.experiment import Cell
from pgdyno.model.experiments.metric import LAUNCHED_WORKERS, PLANNED_WORKERS, Readings
from pgdyno.model.experiments.workload import Statement, Workload
from pgdyno.plan.explain_degree import causes_of
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection
from pgdyno.postgres.planner.parallel_plan import Plan, nodes, planned_workers, shape
from pgdyno.postgres.planner.planner import plan_of

_EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) "
_TRACED = """
SELECT pg_catalog.set_config('trace_sort', 'on', false),
       pg_catalog.set_config('client_min_messages', 'log', false)
"""
_STATEMENT_TIMEOUT = """
SELECT reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'statement_timeout'
"""
# elog's text, which is not translated; -1 is who sorts alone, or merges (tuplesort.c, 11 to 18).
_SORTS = re.compile(r"performsort of worker (\d+) starting")
_RESOURCES = "53"  # class of SQLSTATE: insufficient resources
_READ_ONLY = "25006"
_HINTS = {
    _READ_ONLY: "with --writes a query of yours may write; each execution is rolled back",
    "57014": "it may take 120 s here, and less if statement_timeout of the role or the connection says so",
    "53100": "make room where temporary files and /dev/shm are (containers have 64 MB there unless told "
    "otherwise): each worker takes some",
    "53200": "lower work_mem, or have fewer clients: each worker has its own",
    "53400": "raise temp_file_limit, or work_mem so that less is written to temporary files",
}
"""What to do, by SQLSTATE.

In this order: read_only_sql_transaction, query_canceled, disk_full, out_of_memory,
configuration_limit_exceeded.
"""
_ANOTHER = "give a query that runs on this server, by any number of workers"


class LaunchedWorkers:
    """Reads the meter of parallel workers after each query of a session.

    PostgreSQL counts them from 18 on. They are read between queries, by a connection of their own: nothing
    counts inside what is timed.
    """

    def __init__(self, arm: Arm, session: QuerySession, meters: Sequence[MeterModule]) -> None:
        """Begin now. Raises: ServerError."""
        self._arm, self._session = arm, session
        self._meters = [meter for meter in meters if meter.METER.metric == LAUNCHED_WORKERS]
        self._before = read_meters(self._meters, arm)

    def since(self) -> Mapping[str, float]:
        """Return how many were planned since the last call, and if any, the share that was launched.

        Nothing where the server does not count them. Raises: GeneratorFailedError, ServerError.
        """
        if not self._before:
            return {}
        self._session.report()
        now = read_meters(self._meters, self._arm)
        delta = difference(self._before, now)
        self._before = now
        return {**planned_metric(delta), **meter_values(self._meters, delta, 1)}


@dataclass
class DegreePlans:
    """Scans and joins in the plans of each load, by the number of workers."""

    shapes: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, cell: Cell, shape: str) -> None:
        """Record the scans and joins of a cell's plan."""
        self.shapes.setdefault(cell.load, {})[cell.level] = shape

    def notes(self) -> tuple[str, ...]:
        """Return a note for each load whose degrees have different plans."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        for load, shapes in self.shapes.items():
            by_shape: dict[str, list[str]] = {}
            for workers, form in sorted(shapes.items()):
                by_shape.setdefault(form, []).append(str(workers))
            if len(by_shape) > 1:
                listed = "; ".join(f"{', '.join(workers)}: {form}" for form, workers in by_shape.items())
                yield f"{load}: not the workers alone differ, but plans as well, by workers: {listed}"


def require_degree(arm: Arm, workload: Workload) -> str | None:
    """Run a workload's statement once on an arm's server; nothing where it is to have no certain degree.

    Returns what its plan is made of, if it has one.
    Raises: UsageError with the server's words if the statement fails, ServerError if that is for want of
    memory or space; MeasurementError if it is planned with another number of workers, or not all of them were
    launched.
    """
    statement = workload.statement
    if statement is None or statement.workers is None:
        return None
    made_of: str | None = None
    with _session(arm, workload) as connection:
        if statement.builds_index:
            launched = _launched_to_build(connection, statement.sql)
        else:
            plan = _plan(connection, statement, arm, workload)
            launched, made_of = _launched(plan), shape(plan)
    if launched != statement.workers:
        raise MeasurementError(
            f"{workload.title}: only {launched} of {statement.workers} workers were launched on the server "
            f"of {arm.variant.name}",
            hint="nothing else may use parallel workers of this server meanwhile",
        )
    return made_of


def _plan(connection: ControlConnection, statement: Statement, arm: Arm, workload: Workload) -> Plan:
    """Return the plan that was run. Raises: MeasurementError if it has not the right number of workers."""
    row = connection.execute(
        (_EXPLAIN + statement.sql).encode(), binary=True
    ).fetchone()  # one statement, as the load
    if not statement.is_rolled_back:
        _require_nothing_written(connection, workload)
    plan = plan_of(row)
    planned = planned_workers(plan)
    if planned != statement.workers:
        raise MeasurementError(
            f"{workload.title}: planned otherwise on the server of {arm.variant.name}",
            detail=f"workers planned: {planned}; {causes_of(connection, statement.sql)}",
            hint="pgdyno explain-degree shows the limit that decides the number of workers of a query",
        )
    return plan


def _launched(plan: Plan) -> int:
    return max((node["Workers Launched"] for node in nodes(plan) if "Workers Launched" in node), default=0)


def _require_nothing_written(connection: ControlConnection, workload: Workload) -> None:
    """Raise UsageError if the transaction has been given an id, as only writing ones are."""
    if connection.execute("SELECT pg_catalog.pg_current_xact_id_if_assigned()").fetchone() != (None,):
        raise UsageError(
            f"the query writes ({workload.title})",
            detail="it was run once, and rolled back",
            hint=_HINTS[_READ_ONLY],
        )


def _launched_to_build(connection: ControlConnection, sql: str) -> int:
    """Return how many workers sorted for an index, in addition to the leader."""
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    connection.execute(_TRACED)
    connection.execute(sql.encode())
    taking_part = {number for text in said for number in _SORTS.findall(text)}
    return max(0, len(taking_part) - 1)


@contextmanager
def _session(arm: Arm, workload: Workload) -> Iterator[ControlConnection]:
    """Provide a session like the load's. Raises: UsageError for errors in it."""
    with closing(arm.connect()) as connection:
        try:
            _allow_what_the_role_may(connection)
            for name, value in workload.session_settings.items():
                connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", (name, value))
            with connection.transaction(force_rollback=True):
                yield connection
        except psycopg.OperationalError as error:
            raise _failed(workload, error) if error.sqlstate else arm.lost(error) from error
        except psycopg.Error as error:
            raise _failed(workload, error) from error


def _allow_what_the_role_may(connection: ControlConnection) -> None:
    """Give the session the load's search path and statement timeout instead of the control connection's."""
    if connection.execute(_STATEMENT_TIMEOUT).fetchone() != ("0",):
        connection.execute("RESET statement_timeout")
        connection.answer_limit_s = LONG_LIMIT_S
    connection.execute("RESET search_path")


def _failed(workload: Workload, error: psycopg.Error) -> PgdynoError:
    said = error.diag.message_primary or str(error).strip()
    state = error.sqlstate or ""
    kind = ServerError if state.startswith(_RESOURCES) else UsageError
    return kind(
        f"the query fails ({workload.title})",
        detail="; ".join(filter(None, (said, error.diag.message_detail))),
        hint=_HINTS.get(state, _ANOTHER),
    )


def planned_metric(delta: Readings) -> dict[str, float]:
    """Return the metric of workers planned; nothing where the server does not count them."""
    if LAUNCHED_WORKERS not in delta:
        return {}
    _, planned = delta[LAUNCHED_WORKERS]
    return {PLANNED_WORKERS: planned}
