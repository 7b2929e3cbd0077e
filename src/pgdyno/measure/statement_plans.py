"""Sample a workload's statements with parameters, and read the plans with which servers run them.

The load's role plans them, before the load of the first round: a superuser would run casts and functions that
owners of a copy may have planted. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice

from pgdyno.base.errors import ServerError
from pgdyno.load.captured import captured_options
from pgdyno.load.driver import Driver, job_options, prepared_statements
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.statement_counting import shape
from pgdyno.model.experiments.statements import UsedPlans
from pgdyno.model.experiments.workload import DRIVER, PREPARED, Workload
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.columns import read_columns
from pgdyno.postgres.planner.fingerprint import IndexName, fingerprint, indexes_of
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.postgres.sampling.prepared_plans import Document, ExplainedStatement, explain_prepared
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.row_use import with_values_for_returned
from pgdyno.workload.column_draws import read_draws

_MOST_STATEMENTS = 60  # arbitrary: some milliseconds each; those with the most time in the original
PLANNED = frozenset({"select", "insert", "update", "delete", "merge", "with", "values", "table"})
"""First words of statements that EXPLAIN takes."""
_LEAST_VERSION = 140_000  # its pg_prepared_statements counts generic plans
_DEFINITIONS = """
SELECT n.nspname, c.relname, pg_catalog.pg_get_indexdef(c.oid) FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
 WHERE c.relkind OPERATOR(pg_catalog.=) 'i' AND c.relname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (%s)
"""
_CREATE = re.compile(r'CREATE (UNIQUE )?INDEX (?:"(?:[^"]|"")*"|\S+) ON (?:ONLY )?')
_TRANSACTIONS_OF_A_KIND = 20  # arbitrary: kinds are drawn at random, and hardly any is missed
_MOST_TRANSACTIONS = 5000


def sampled_statements(
    connection: Connection, workload: Workload, driver: Driver
) -> tuple[PreparedStatement, ...]:
    """Return statements with parameters, from equally frequent kinds of transactions, so that none is missed.

    Raises: GeneratorFailedError, UsageError, ServerError.
    """
    assert workload.captured is not None  # noqa: S101 — only captured workloads draw from columns
    texts = [one.sql for one in workload.captured.statements]
    columns = read_columns(connection, workload.captured.search_path, texts)
    equal = tuple(replace(one, weight=1.0) for one in workload.captured.transactions)
    known = with_values_for_returned(replace(workload.captured, transactions=equal), columns)
    draws, _ = read_draws(connection, known)
    count = min(_TRANSACTIONS_OF_A_KIND * len(equal), _MOST_TRANSACTIONS)
    return prepared_statements(driver, workload, captured_options(known, draws), count)


def used_plans(
    arms: Sequence[Arm], workload: Workload, loads: Loads
) -> tuple[tuple[UsedPlans, ...], tuple[str, ...]]:
    """Return each arm's plans of a workload's statements, and notes on unknown ones.

    Both are empty if pgdyno's driver does not issue it. Raises: GeneratorFailedError, ServerError.
    """
    if workload.generator != DRIVER:
        return (), ()
    statements: list[PreparedStatement] = []
    found: list[UsedPlans] = []
    unknown: dict[str, str] = {}
    for arm in arms:
        with arm.losses_explained(), closing(loads.connect(arm, workload)) as connection:
            if connection.info.server_version < _LEAST_VERSION:
                return (), ("plans are not compared: PostgreSQL before 14 does not report generic ones",)
            statements = statements or planned_statements(connection, workload, loads)
            for one in statements:
                plans = _plans_of(connection, arm, workload, one)
                if isinstance(plans, ServerError):
                    unknown.setdefault(one.name, (plans.detail or plans.message).rstrip("."))
                else:
                    found.append(plans)
    if not unknown:
        return tuple(found), ()
    some = "the plan of 1 statement is" if len(unknown) == 1 else f"plans of {len(unknown)} statements are"
    return tuple(found), (f"{some} unknown: {next(iter(unknown.values()))}",)


def planned_statements(connection: Connection, workload: Workload, loads: Loads) -> list[PreparedStatement]:
    """Return the statements that can be planned; of tables that differ in a number, the first one's.

    Raises: GeneratorFailedError, UsageError, ServerError.
    """
    driver = loads.find_driver()
    if workload.captured is not None:
        times = {one.name: one.seen.time_ms for one in workload.captured.statements}
        found = sorted(sampled_statements(connection, workload, driver), key=lambda one: -times[one.name])
    else:
        every = prepared_statements(driver, workload, job_options(workload))
        found = list({shape(one.sql): one for one in reversed(every)}.values())[::-1]
    planned = (one for one in found if first_word(one.sql) in PLANNED)
    return list(islice(planned, _MOST_STATEMENTS))


def _plans_of(
    connection: Connection, arm: Arm, workload: Workload, statement: PreparedStatement
) -> UsedPlans | ServerError:
    """Return a statement's plans, or why it cannot be planned: a temporary table, a right that is missing."""
    [[mode]] = connection.execute("SELECT pg_catalog.current_setting('plan_cache_mode')").fetchall()
    try:
        explained = explain_prepared(connection, statement, is_run=False)
    except ServerError as error:
        if connection.closed:
            raise
        return error
    documents = [document["Plan"] for document in in_use(explained, workload, str(mode))]
    definitions = _definitions(connection, documents)
    shapes = dict.fromkeys(fingerprint(document, definitions) for document in documents)
    return UsedPlans(workload.name, statement.name, arm.variant.name, tuple(shapes))


def in_use(found: ExplainedStatement, workload: Workload, mode: str) -> Sequence[Document]:
    """Return the plans that executions use: custom ones, or the generic one."""
    return found.generics[:1] if is_generic(found, workload, mode) else found.customs


def is_generic(found: ExplainedStatement, workload: Workload, mode: str) -> bool:
    """Whether executions use the generic plan; ``mode`` is the server's plan_cache_mode."""
    return workload.protocol == PREPARED and (
        mode == "force_generic_plan" or (mode == "auto" and found.is_kept)
    )


def _definitions(connection: Connection, documents: Sequence[Document]) -> Mapping[IndexName, str]:
    """Return the definitions of indexes in plans, without their names."""
    names = sorted({name for document in documents for _, name in indexes_of(document)})
    rows = connection.execute(_DEFINITIONS, (names,)).fetchall() if names else []
    return {(str(schema), str(name)): definition(str(text)) for schema, name, text in rows}


def definition(text: str) -> str:
    """Return ``CREATE INDEX name ON table USING …`` as ``table USING …``, with UNIQUE before it."""
    return _CREATE.sub(lambda found: found[1] or "", text, count=1)
