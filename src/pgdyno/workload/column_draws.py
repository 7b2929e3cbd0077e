"""How to draw values of columns for a captured workload, based on the copy's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.load.captured import ColumnDraws
from pgdyno.model.experiments.captured import ArrayOf, CapturedWorkload, ColumnValue, NewKey
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.columns import ColumnValues, read_column_values, read_columns
from pgdyno.workload.capture.name_resolution import table_column, why_unknown

_MOST_NAMED = 5  # columns in a message


def read_draws(connection: Connection, workload: CapturedWorkload) -> tuple[ColumnDraws, tuple[str, ...]]:
    """Return how to draw values of columns, and notes on columns without values.

    Raises: UsageError if the database lacks a column; ServerError.
    """
    drawn = [one for kind in workload.transactions for call in kind.calls for one in call.parameters]
    wanted = {one.column for one in drawn if isinstance(one, ColumnValue | ArrayOf | NewKey)}
    texts = [*(one.sql for one in workload.statements), *wanted]
    columns = read_columns(connection, workload.search_path, texts)
    known = {column.path: column for column in columns}
    if missing := sorted(wanted - known.keys()):
        raise UsageError(
            f'the database "{connection.info.dbname}" lacks {", ".join(missing[:_MOST_NAMED])}',
            hint="a copy has the original's tables: did the schema change since the capture, or is a column "
            "in the workload's file misspelt?",
        )
    found = {path: _values_of(connection, known[path], columns) for path in sorted(wanted)}
    return (
        ColumnDraws(
            {path: _draw(one) for path, (one, _) in found.items()},
            {path: one.highest or 0 for path, (one, _) in found.items()},
        ),
        (
            *(f"{why}: NULL is used" for _, why in found.values() if why),
            *(
                f"{path}: values that are not UTF-8 are not drawn"
                for path, (one, _) in found.items()
                if one.unreadable
            ),
        ),
    )


def _values_of(connection: Connection, column: Column, columns: Sequence[Column]) -> tuple[ColumnValues, str]:
    """Return values of a table's column, or of the one that a view's shows, or why they are unknown.

    Row-level security may fail for a role without the application's settings.
    """
    source = table_column(column, columns)
    if source is None:
        return ColumnValues(), why_unknown(column, columns)
    if not source.is_readable:
        return ColumnValues(), f"the role may not read {source.path}"
    try:
        values = read_column_values(connection, source)
    except ServerError as error:
        if isinstance(error.__cause__, psycopg.OperationalError):  # a timeout, a lock, a lost connection
            raise
        return ColumnValues(), f"{source.path} cannot be read ({error.message})"
    return values, "" if values.is_known else f"{column.path} has no values"


def _draw(values: ColumnValues) -> Mapping[str, object]:
    """Return how the driver draws a value of a column."""
    if values.dense is not None:
        low, high = values.dense
        return {"draw": "integer", "low": low, "high": high}
    if values.sample:
        return {"draw": "one-of", "values": list(values.sample)}
    return {"draw": "null"}
