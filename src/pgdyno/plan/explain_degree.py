"""The use case ``explain-degree``: a query's parallel workers, the limit that decided them, remedies.

The query is planned repeatedly, each time with one limit changed; the difference is the effect of that limit.
The planner's rules, reimplemented in ``postgres/planner/parallel_plan.py``, supply the numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.plan.degrees.advice import advise
from pgdyno.plan.degrees.causes import Inquiry, explain_gather
from pgdyno.plan.degrees.serial import why_none
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.connection_by_directory import connect_by_directory
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.parallel_degree import Cause, Degree, ExplainedGather, Gather, Limit, Pools
from pgdyno.postgres.planner.parallel_catalog import read_hazards, read_pools, read_tables
from pgdyno.postgres.planner.parallel_plan import (
    Plan,
    expressions,
    gathers,
    has_initial_plans,
    scans,
    written_by,
)
from pgdyno.postgres.planner.planner import Planner
from pgdyno.postgres.planner.sql_text import (
    builds_index,
    calls_in,
    first_word,
    has_parameter,
    has_several_statements,
    operators_in,
)

_SHOWN = (
    Limit.CAP,
    Limit.TABLE_SIZE,
    Limit.INDEX_SIZE,
    Limit.SETUP_COST,
    Limit.TUPLE_COST,
    Limit.CHILDREN,
    Limit.DEBUG,
    Limit.POOL,
    Limit.PROCESSES,
)
_LEADER = "parallel_leader_participation"
_READS_ONLY = (
    "of the statements that write, PostgreSQL plans workers only for CREATE TABLE AS, SELECT INTO, and "
    "CREATE and REFRESH MATERIALIZED VIEW"
)
_NOT_PLANNED = {
    "declare": ("a cursor is never planned with workers", "pass only its query"),
    "execute": ("a prepared statement exists only in its own session", "pass only its query"),
    "refresh": ("PostgreSQL cannot explain REFRESH", "pass the query of the materialized view"),
    "explain": ("the statement is already an EXPLAIN", "pass only the query"),
}


def explain_degree_of(
    statement: str,
    workers: int | None,
    dsn: str | None,
    data_directory: Path | None = None,
    database: str | None = None,
) -> Degree:
    """Explain the degree on the given server, or else on the one of libpq's environment.

    ``database`` overrides the database of the connection string or environment.
    Raises: UsageError for a statement that has no degree; ServerError, DataDirectoryError.
    """
    check_statement(statement)
    with contextlib.closing(open_named(dsn, data_directory, database)) as connection:
        return explain_degree(connection, statement, workers)


def open_named(dsn: str | None, data_directory: Path | None, database: str | None) -> Connection:
    """Connect to a database of the given server, to plan statements there.

    Raises: ServerError, DataDirectoryError; RefusedError for a role with excessive privileges.
    """
    with contextlib.ExitStack() as stack:
        if data_directory is None:
            connection: Connection = connect(dsn, database=database)
        else:
            connection = connect_by_directory(data_directory, database=database)
        stack.callback(connection.close)
        require_powerless(connection, "the statement would be planned")
        stack.pop_all()
    return connection


def check_statement(statement: str) -> None:
    """Refuse unsuitable statements before connecting to a server. Raises: UsageError."""
    word = first_word(statement)
    if not word:
        raise UsageError("there is no statement", hint="pgdyno explain-degree 'SELECT count(*) FROM …'")
    if has_several_statements(statement):
        raise UsageError("there is more than one statement", hint="pass one at a time")
    if builds_index(statement):
        raise UsageError(
            "an index build has no plan",
            detail="its workers are derived from the table's size or its storage parameter "
            "parallel_workers, at most max_parallel_maintenance_workers; without that parameter only as many "
            "as leave each process, including the leader, 32 MB of maintenance_work_mem",
            hint="pgdyno run parallel-degree --workload create-index measures how many workers pay off",
        )
    if word in _NOT_PLANNED:
        message, hint = _NOT_PLANNED[word]
        raise UsageError(message, hint=hint)
    if has_parameter(statement):
        raise UsageError(
            "the statement has parameters such as $1",
            detail="their values decide which partitions are scanned, and so how many workers are planned",
            hint="put values of their types in their places",
        )


def never_with_workers(command: str) -> UsageError:
    """Return the error for a statement that never has workers, whatever the settings."""
    return UsageError(
        f"{command} is never planned with workers",
        detail=_READS_ONLY,
        hint="if the query inside it is the slow part, pass only that query",
    )


def explain_degree(connection: Connection, statement: str, workers: int | None) -> Degree:
    """Explain the degree of a statement that passed ``check_statement``. Read-only."""
    settings = read_settings(connection)
    inquiry = inquiry_of(connection, statement, settings)
    plan = inquiry.plan({})
    if command := written_by(plan):
        raise never_with_workers(command)
    return degree_of(inquiry, plan, read_pools(connection, settings), workers)


def inquiry_of(
    connection: Connection, statement: str, settings: Mapping[str, Guc], search_path: str | None = None
) -> Inquiry:
    """Return the inquiry about a statement; ``search_path`` None: the role's default."""
    planner = Planner(connection, statement, settings, search_path)
    return Inquiry(
        planner.plan,
        lambda scans: read_tables(connection, scans),
        lambda plan: read_hazards(connection, *_named(f"{statement}\n{expressions(plan)}"), search_path),
        settings,
    )


def causes_of(connection: Connection, statement: str) -> str:
    """Describe the limits that decide a statement's degree. Raises: UsageError, like ``explain_degree``."""
    return "; ".join(f"{one.what}: {one.why}" for one in explain_degree(connection, statement, None).causes)


def degree_of(inquiry: Inquiry, plan: Plan, pools: Pools, workers: int | None) -> Degree:
    """Return the findings about a plan, and the steps to a requested number of workers."""
    chosen = inquiry.without_debug()
    found = tuple(explain_gather(inquiry, gather) for gather in gathers(chosen))
    causes, alternatives = (found[0].causes, ()) if found else why_none(inquiry, chosen)
    main = found[0] if found else None
    advice = None if workers is None else advise(inquiry, workers, main, causes, pools)
    planned = main.gather.workers if main else 0
    notes = [*_notes(inquiry, found)]
    if (tested := _single_copy(inquiry, plan)) and not found:
        notes.insert(0, f"without {inquiry.shown(Limit.DEBUG)}: 0 workers, due to {_listed(causes)}")
        planned, causes, alternatives = 1, (_debug(inquiry),), ()
        found = (ExplainedGather(tested, (), causes, None, None),)
    launchable = pools.launchable(planned)
    return Degree(
        version=inquiry.settings["server_version"].setting,
        planned=planned,
        gathers=found,
        causes=causes,
        alternatives=alternatives,
        tables=tuple(inquiry.tables(scans(chosen)).values()),
        settings=_shown_settings(inquiry),
        pools=pools,
        launchable=launchable,
        pool_limit=None if launchable in (None, planned) else pools.narrower,
        notes=tuple(notes),
        advice=advice,
    )


def _named(sql: str) -> tuple[frozenset[tuple[str | None, str]], frozenset[str]]:
    return calls_in(sql), operators_in(sql)


def _single_copy(inquiry: Inquiry, plan: Plan) -> Gather | None:
    """Return the Gather added by ``debug_parallel_query``; ``regress`` adds one too, but EXPLAIN hides it."""
    if inquiry.debug.setting == "off":
        return None
    shown = plan
    if inquiry.debug.setting != "on":
        if has_initial_plans(plan):  # a hidden Gather would have taken them over, so none was added
            return None
        shown = inquiry.plan({inquiry.debug.name: "on"})
    return next((gather for gather in gathers(shown) if gather.is_single_copy), None)


def _debug(inquiry: Inquiry) -> Cause:
    return Cause(
        Limit.DEBUG,
        inquiry.shown(Limit.DEBUG),
        "one worker does all of the work, to test the parallel-safety labels of functions; nothing runs in "
        "parallel",
        f"SET {inquiry.debug.name} = off",
    )


def _notes(inquiry: Inquiry, found: Sequence[ExplainedGather]) -> Iterator[str]:
    if len(found) > 1:
        yield "all Gathers of a query take their workers from the same pools"
    if found:
        leader = inquiry.settings[_LEADER].setting == "on"
        works = "also executes the plan" if leader else "only collects rows"
        yield f"the leader {works} ({_LEADER} = {inquiry.settings[_LEADER].setting})"
        yield "a Gather that starts with too few free workers gets no more of them later"


def _listed(causes: Sequence[Cause]) -> str:
    return " and ".join(cause.what for cause in causes)


def _shown_settings(inquiry: Inquiry) -> Mapping[str, str]:
    gucs = (inquiry.debug if one is Limit.DEBUG else inquiry.settings[one.value] for one in _SHOWN)
    return {guc.name: guc.display() for guc in (*gucs, inquiry.settings[_LEADER])}
