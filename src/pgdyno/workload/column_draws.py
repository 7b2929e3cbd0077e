"""How to draw values of columns for a captured workload, based on the copy's rows."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base.errors import UsageError
from pgdyno.load.captured import ColumnDraws
from pgdyno.model.experiments.captured import ArrayOf, CapturedWorkload, ColumnValue, NewKey
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.column_values import ColumnValues, read_column_values
from pgdyno.postgres.inspection.columns import read_columns

_MOST_NAMED = 5  # columns in a message


def read_draws(connection: Connection, workload: CapturedWorkload) -> tuple[ColumnDraws, tuple[str, ...]]:
    """Return how to draw values of columns, and notes on columns without values.

    Raises: UsageError if the database lacks a column; ServerError.
    """
    drawn = [one for kind in workload.transactions for call in kind.calls for one in call.parameters]
    wanted = {one.column for one in drawn if isinstance(one, ColumnValue | ArrayOf | NewKey)}
    known = {column.path: column for column in read_columns(connection, workload.search_path)}
    if missing := sorted(wanted - known.keys()):
        raise UsageError(
            f'the database "{connection.info.dbname}" lacks {", ".join(missing[:_MOST_NAMED])}',
            hint="a copy has the original's tables: did the schema change since the capture, or is a column "
            "in the workload's file misspelt?",
        )
    values = {path: read_column_values(connection, known[path]) for path in sorted(wanted)}
    return (
        ColumnDraws(
            {path: _draw(one) for path, one in values.items()},
            {path: one.highest or 0 for path, one in values.items()},
        ),
        tuple(f"{path} has no values: NULL is used" for path, one in values.items() if not one.is_known),
    )


def _draw(values: ColumnValues) -> Mapping[str, object]:
    """Return how the driver draws a value of a column."""
    if values.dense is not None:
        low, high = values.dense
        return {"draw": "integer", "low": low, "high": high}
    if values.sample:
        return {"draw": "one-of", "values": list(values.sample)}
    return {"draw": "null"}
