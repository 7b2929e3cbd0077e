"""Statements of a captured workload with parameters, to plan or to ask them one by one."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.app.arenas.column_draws import read_draws
from pgdyno.capture.row_use import with_values_for_returned
from pgdyno.generators.captured import captured_options
from pgdyno.generators.driver import Driver
from pgdyno.generators.statements import prepared_statements
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.servers.statements import PreparedStatement
from pgdyno.server.connection.connection import Connection
from pgdyno.server.inspection.columns import read_columns

_TRANSACTIONS_OF_A_KIND = 20  # arbitrary: those of all kinds are mixed, so that hardly any has none
_MOST_TRANSACTIONS = 5000


def sampled_statements(
    connection: Connection, workload: Workload, driver: Driver
) -> tuple[PreparedStatement, ...]:
    """Return statements with parameters: all kinds of transactions are as frequent, so that none is missed.

    Raises: GeneratorFailedError, UsageError, ServerError.
    """
    assert workload.captured is not None  # noqa: S101 — others have no columns to draw from
    columns = read_columns(connection, workload.captured.search_path)
    equal = tuple(replace(one, weight=1.0) for one in workload.captured.transactions)
    known = with_values_for_returned(replace(workload.captured, transactions=equal), columns)
    draws, _ = read_draws(connection, known)
    count = min(_TRANSACTIONS_OF_A_KIND * len(equal), _MOST_TRANSACTIONS)
    return prepared_statements(driver, workload, captured_options(known, draws), count)
