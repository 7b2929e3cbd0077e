"""The answers of a database to the queries of invariants, each in a READ ONLY transaction."""

from __future__ import annotations

import psycopg

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.model.experiments.invariant import Invariant, QueryAnswer
from pgdyno.postgres.connection.control_connection import ControlConnection, look, parameter_types

_LIMIT_S = 60  # arbitrary: a sum over some million rows takes a second
_MARGIN_S = 5.0  # until the server has told that it has ended a query
# Floating-point sums depend on the order of rows in their last digits: 9 of 15 are compared.
_SETTINGS = {"extra_float_digits": "-6", "statement_timeout": f"{_LIMIT_S}s"}
# A subquery can only read, and there is but one; its last line may be a comment. Of the number of rows it
# matters alone whether there are several.
_HEAD, _TAIL = "SELECT * FROM (\n", "\n) AS invariant LIMIT 2"


def read_answer(connection: ControlConnection, invariant: Invariant) -> QueryAnswer:
    """Return the answer at this moment.

    Raises: UsageError for a query that the server refuses, or that takes too long; ServerError if the session
    is lost.
    """
    connection.answer_limit_s = _LIMIT_S + _MARGIN_S
    text = f"{_HEAD}{invariant.sql.strip().rstrip(';')}{_TAIL}"
    try:
        with look(connection, _SETTINGS):
            parameter_types(connection, text.encode())  # the server refuses to parse several statements
            found = connection.execute(text.encode()).pgresult
    except psycopg.Error as error:
        if connection.closed:
            raise ServerError(
                f'the session that asks for the invariant "{invariant.name}" was lost'
            ) from error
        raise UsageError(
            f'the server does not answer the query of the invariant "{invariant.name}"',
            detail=error.diag.message_primary or str(error),
            hint="it has to be one query that only reads, as the role of the load; pgdyno workload edit "
            "changes it",
        ) from error
    assert found is not None  # noqa: S101 — a query has a result
    if found.nfields != 1:
        raise UsageError(
            f'the query of the invariant "{invariant.name}" returns {found.nfields} columns',
            hint="let it return one value",
        )
    value = found.get_value(0, 0) if found.ntuples else None
    return QueryAnswer(found.ntuples, None if value is None else value.decode(errors="replace"))
