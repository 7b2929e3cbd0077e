"""Find out how a scratch server plans the statements of a captured workload, as the role of its load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import TypeAlias

from pgdyno.base.errors import PgdynoError, ServerError
from pgdyno.base.facts import Fact, unknown
from pgdyno.load.driver import Driver
from pgdyno.measure.arenas.captured_samples import sampled_statements
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.workload import PREPARED, Workload
from pgdyno.plan.statement_plans import SOURCE, plan_statement
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.statements import PlannedStatement, WorkloadStatements
from pgdyno.workload.capture.statements import reads_alone

_MOST_UNPLANNED = 0.05  # of the original; the plans of the rest say nothing of a larger share


Connect: TypeAlias = Callable[[], Connection]
"""Opens a session as the load of the workload has: same role, and search path."""


def plan_captured(
    connect: Connect, prepare: Callable[[Connection], None], workload: Workload, driver: Driver
) -> Fact[WorkloadStatements]:
    """Plan the statements of a captured workload; unknown if that fails for too much of its time.

    ``prepare`` is called with the session that they are planned in.
    """
    captured = workload.captured
    assert captured is not None  # noqa: S101 — the caller has looked
    if captured.protocol != PREPARED:
        return unknown(f'workload "{workload.name}" does not prepare its statements by name', SOURCE)
    try:
        with closing(connect()) as connection:
            samples = sampled_statements(connection, workload, driver)
    except PgdynoError as error:
        return unknown(_said(error), SOURCE)
    calls, shares = _calls_per_transaction(captured), captured.shares
    planned: dict[str, PlannedStatement] = {}
    with closing(connect()) as connection:
        prepare(connection)
        for one in samples:
            with suppress(ServerError):  # it is missing then, which counts below
                each = replace(one, calls=calls[one.name])
                found = plan_statement(connection, each, is_run=reads_alone(one.sql))
                planned[one.name] = replace(found, is_private=True)
    prepared = [one.name for one in captured.statements if one.is_prepared]
    missing = [name for name in prepared if name not in planned]
    if sum(shares[name] for name in missing) > _MOST_UNPLANNED:
        return unknown(
            f"too many statements of {workload.name} cannot be planned: {', '.join(missing)}", SOURCE
        )
    return Fact(WorkloadStatements(workload.name, tuple(planned.values())), SOURCE)


def _calls_per_transaction(captured: CapturedWorkload) -> Mapping[str, float]:
    """Return how often each statement is called in a transaction of any kind, on average."""
    whole = sum(one.weight for one in captured.transactions)
    calls: defaultdict[str, float] = defaultdict(float)
    for one in captured.transactions:
        for call in one.calls:
            calls[call.statement] += one.weight * call.times / whole
    return calls


def _said(error: PgdynoError) -> str:
    return f"{error.message}: {error.detail}" if error.detail else error.message
