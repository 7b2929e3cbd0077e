"""Check a statement's number of parallel workers before it is timed; count workers planned and launched.

The statement runs once, in a session with the load's settings; the run is also a warm-up. A query runs with
EXPLAIN ANALYZE, which shows the workers planned and launched. EXPLAIN ANALYZE slows the query down, so no
timing is taken from it. The run is rolled back: EXPLAIN ANALYZE executes CREATE TABLE AS and the like even in
a read-only transaction, which rejects the plain statement.

CREATE INDEX has no plan, and the server does not count its workers (pg_stat_database counts those of Gather
nodes only). With trace_sort, each process that takes part in the sort logs a message.
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
from pgdyno.model.experiments.metric import LAUNCHED_WORKERS, PLANNED_WORKERS, Readings
from pgdyno.model.experiments.workload import Cell, Statement, Workload
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
# elog text, never translated. Worker -1 sorts alone, or merges (tuplesort.c, 11 to 18).
_SORTS = re.compile(r"performsort of worker (\d+) starting")
_RESOURCES = "53"  # class of SQLSTATE: insufficient resources
_READ_ONLY = "25006"
_HINTS = {
    _READ_ONLY: "with --writes the query may write; each execution is rolled back",
    "57014": "the limit is 120 s here, or statement_timeout of the role or the connection, if shorter",
    "53100": "free space for temporary files, and in /dev/shm (64 MB in containers by default): each worker "
    "needs some",
    "53200": "lower work_mem, or use fewer clients: each worker uses up to work_mem",
    "53400": "raise temp_file_limit, or raise work_mem to write less to temporary files",
}
"""Hints by SQLSTATE.

In this order: read_only_sql_transaction, query_canceled, disk_full, out_of_memory,
configuration_limit_exceeded.
"""
_ANOTHER = "give a query that runs on this server with any number of workers"


class LaunchedWorkers:
    """Reads the meter of parallel workers after each query of a session.

    PostgreSQL counts them since version 18. A separate connection reads the counters between queries, outside
    the timed intervals.
    """

    def __init__(self, arm: Arm, session: QuerySession, meters: Sequence[MeterModule]) -> None:
        """Take the first reading. Raises: ServerError."""
        self._arm, self._session = arm, session
        self._meters = [meter for meter in meters if meter.METER.metric == LAUNCHED_WORKERS]
        self._before = read_meters(self._meters, arm)

    def since(self) -> Mapping[str, float]:
        """Return the workers planned since the last call, and the share launched if any were planned.

        Empty where the server does not count them. Raises: GeneratorFailedError, ServerError.
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
    """Scan and join nodes in the plans of each load, by number of workers."""

    shapes: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, cell: Cell, shape: str) -> None:
        """Record the scans and joins of a cell's plan."""
        self.shapes.setdefault(cell.load, {})[cell.level] = shape

    def notes(self) -> tuple[str, ...]:
        """Return a note for each load with different plans at different numbers of workers."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        for load, shapes in self.shapes.items():
            by_shape: dict[str, list[str]] = {}
            for workers, form in sorted(shapes.items()):
                by_shape.setdefault(form, []).append(str(workers))
            if len(by_shape) > 1:
                listed = "; ".join(f"{', '.join(workers)}: {form}" for form, workers in by_shape.items())
                yield f"{load}: not only the number of workers differs; plans by workers: {listed}"


def require_degree(arm: Arm, workload: Workload) -> str | None:
    """Run a workload's statement once and check its number of workers; return the shape of its plan.

    None for a statement without a plan, or without a required number of workers (then it does not run).
    Raises: UsageError with the server's message if the statement fails, ServerError if it fails for lack of
    memory or disk space; MeasurementError if the plan has a different number of workers, or not all were
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
            hint="no other session may use parallel workers of this server during the measurement",
        )
    return made_of


def _plan(connection: ControlConnection, statement: Statement, arm: Arm, workload: Workload) -> Plan:
    """Return the executed plan. Raises: MeasurementError if its number of workers is wrong."""
    row = connection.execute(
        (_EXPLAIN + statement.sql).encode(), binary=True
    ).fetchone()  # a single statement, as the load sends it
    if not statement.is_rolled_back:
        _require_nothing_written(connection, workload)
    plan = plan_of(row)
    planned = planned_workers(plan)
    if planned != statement.workers:
        raise MeasurementError(
            f"{workload.title}: wrong number planned on the server of {arm.variant.name}",
            detail=f"workers planned: {planned}; {causes_of(connection, statement.sql)}",
            hint="pgdyno explain-degree shows the limit that decides the number of workers of a query",
        )
    return plan


def _launched(plan: Plan) -> int:
    return max((node["Workers Launched"] for node in nodes(plan) if "Workers Launched" in node), default=0)


def _require_nothing_written(connection: ControlConnection, workload: Workload) -> None:
    """Raise UsageError if the transaction has an ID: only writing transactions are assigned one."""
    if connection.execute("SELECT pg_catalog.pg_current_xact_id_if_assigned()").fetchone() != (None,):
        raise UsageError(
            f"the query writes ({workload.title})",
            detail="it was run once, and rolled back",
            hint=_HINTS[_READ_ONLY],
        )


def _launched_to_build(connection: ControlConnection, sql: str) -> int:
    """Return the number of workers that sorted for the index, without the leader."""
    messages: list[str] = []
    connection.add_notice_handler(lambda notice: messages.append(notice.message_primary or ""))
    connection.execute(_TRACED)
    connection.execute(sql.encode())
    taking_part = {number for text in messages for number in _SORTS.findall(text)}
    return max(0, len(taking_part) - 1)


@contextmanager
def _session(arm: Arm, workload: Workload) -> Iterator[ControlConnection]:
    """Provide a session with the load's settings. Raises: UsageError for errors inside the context."""
    with closing(arm.connect()) as connection:
        try:
            _use_role_settings(connection)
            for name, value in workload.session_settings.items():
                connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", (name, value))
            with connection.transaction(force_rollback=True):
                yield connection
        except psycopg.OperationalError as error:
            raise _failed(workload, error) if error.sqlstate else arm.lost(error) from error
        except psycopg.Error as error:
            raise _failed(workload, error) from error


def _use_role_settings(connection: ControlConnection) -> None:
    """Use the role's search path and statement timeout, as the load does, not the control connection's."""
    if connection.execute(_STATEMENT_TIMEOUT).fetchone() != ("0",):
        connection.execute("RESET statement_timeout")
        connection.answer_limit_s = LONG_LIMIT_S
    connection.execute("RESET search_path")


def _failed(workload: Workload, error: psycopg.Error) -> PgdynoError:
    message = error.diag.message_primary or str(error).strip()
    state = error.sqlstate or ""
    kind = ServerError if state.startswith(_RESOURCES) else UsageError
    return kind(
        f"the query fails ({workload.title})",
        detail="; ".join(filter(None, (message, error.diag.message_detail))),
        hint=_HINTS.get(state, _ANOTHER),
    )


def planned_metric(delta: Readings) -> dict[str, float]:
    """Return the metric of workers planned; empty where the server does not count them."""
    if LAUNCHED_WORKERS not in delta:
        return {}
    _, planned = delta[LAUNCHED_WORKERS]
    return {PLANNED_WORKERS: planned}
