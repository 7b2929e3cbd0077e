"""Statements of a captured workload with parameters, to plan or run them one by one."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.load.captured import captured_options
from pgdyno.load.driver import Driver
from pgdyno.load.statements import prepared_statements
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.columns import read_columns
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.workload.capture.row_use import with_values_for_returned
from pgdyno.workload.column_draws import read_draws

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
