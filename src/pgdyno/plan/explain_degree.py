"""The use case ``explain-degree``: a query's workers, the limit that decided them, remedies.

The planner itself is asked, again and again with one limit changed: what it does then is what the limit did.
Rules of its own (``postgres/planner/parallel_plan.py``) put the numbers to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.plan.degrees.advice import advise
from pgdyno.plan.degrees.causes import explain_gather
from pgdyno.plan.degrees.inquiry import Inquiry
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
    "of statements that write, PostgreSQL plans workers for CREATE TABLE AS, SELECT INTO, and CREATE and "
    "REFRESH MATERIALIZED VIEW alone"
)
_NOT_PLANNED = {
    "declare": ("a cursor is never planned with workers", "give its query by itself"),
    "execute": ("a prepared statement is known to its own session alone", "give its query by itself"),
    "refresh": ("REFRESH is not explained by PostgreSQL", "give the query of the materialized view"),
    "explain": ("this is EXPLAIN already", "give the query by itself"),
}


def explain_degree_of(
    statement: str,
    workers: int | None,
    dsn: str | None,
    data_directory: Path | None = None,
    database: str | None = None,
) -> Degree:
    """Explain the degree on the server that is named, or else the one of libpq's environment.

    ``database`` stands for the one that these name.
    Raises: UsageError for a statement that has no degree; ServerError, DataDirectoryError.
    """
    check_statement(statement)
    with contextlib.closing(open_named(dsn, data_directory, database)) as connection:
        return explain_degree(connection, statement, workers)


def open_named(dsn: str | None, data_directory: Path | None, database: str | None) -> Connection:
    """Connect to a database of the server that is named, to plan statements there.

    Raises: ServerError, DataDirectoryError; RefusedError for a role whose rights are too much for that.
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
    """Refuse unsuitable statements before any server is asked. Raises: UsageError."""
    word = first_word(statement)
    if not word:
        raise UsageError("there is no statement", hint="pgdyno explain-degree 'SELECT count(*) FROM …'")
    if has_several_statements(statement):
        raise UsageError("there is more than one statement", hint="give one at a time")
    if builds_index(statement):
        raise UsageError(
            "the building of an index has no plan",
            detail="its workers come from the table's size or its option parallel_workers, at most "
            "max_parallel_maintenance_workers; without that option only as many as leave each process, the "
            "leader included, 32 MB of maintenance_work_mem",
            hint="pgdyno run parallel-degree --workload create-index measures how many of them pay",
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
        hint="if the query inside it is the slow part, give that query alone",
    )


def explain_degree(connection: Connection, statement: str, workers: int | None) -> Degree:
    """Explain the degree of a statement that ``check_statement`` has let pass. Changes nothing."""
    settings = read_settings(connection)
    inquiry = inquiry_of(connection, statement, settings)
    plan = inquiry.plan({})
    if command := written_by(plan):
        raise never_with_workers(command)
    return degree_of(inquiry, plan, read_pools(connection, settings), workers)


def inquiry_of(
    connection: Connection, statement: str, settings: Mapping[str, Guc], search_path: str | None = None
) -> Inquiry:
    """Return the questions about a statement; ``search_path`` None is the role's own."""
    planner = Planner(connection, statement, settings, search_path)
    return Inquiry(
        planner.plan,
        lambda scans: read_tables(connection, scans),
        lambda plan: read_hazards(connection, *_named(f"{statement}\n{expressions(plan)}"), search_path),
        settings,
    )


def causes_of(connection: Connection, statement: str) -> str:
    """Describe the limits that decide a statement's degree. Raises: UsageError as ``explain_degree``."""
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
        notes.insert(0, f"without {inquiry.shown(Limit.DEBUG)}: 0 workers, by {_listed(causes)}")
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
    """Return the Gather that is there for a test; ``regress`` puts one in too, and hides it in EXPLAIN."""
    if inquiry.debug.setting == "off":
        return None
    shown = plan
    if inquiry.debug.setting != "on":
        if has_initial_plans(plan):  # those would move to a Gather that cannot be seen, so there is none
            return None
        shown = inquiry.plan({inquiry.debug.name: "on"})
    return next((gather for gather in gathers(shown) if gather.is_single_copy), None)


def _debug(inquiry: Inquiry) -> Cause:
    return Cause(
        Limit.DEBUG,
        inquiry.shown(Limit.DEBUG),
        "it has one worker do all of the work, to test whether functions are labelled rightly; nothing is "
        "done in parallel",
        f"SET {inquiry.debug.name} = off",
    )


def _notes(inquiry: Inquiry, found: Sequence[ExplainedGather]) -> Iterator[str]:
    if len(found) > 1:
        yield "all Gathers of a query take their workers from the same pools"
    if found:
        leader = inquiry.settings[_LEADER].setting == "on"
        works = "works on its own share as well" if leader else "collects rows only"
        yield f"the leader {works} ({_LEADER} = {inquiry.settings[_LEADER].setting})"
        yield "workers that are not free when a Gather starts are missing until it ends"


def _listed(causes: Sequence[Cause]) -> str:
    return " and ".join(cause.what for cause in causes)


def _shown_settings(inquiry: Inquiry) -> Mapping[str, str]:
    gucs = (inquiry.debug if one is Limit.DEBUG else inquiry.settings[one.value] for one in _SHOWN)
    return {guc.name: guc.display() for guc in (*gucs, inquiry.settings[_LEADER])}
