"""How to draw values of columns for a captured workload, based on the copy's rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.load.captured import ColumnDraws, independent_draw
from pgdyno.model.experiments.captured import CapturedWorkload, Independent, OfColumn, RangeEnd
from pgdyno.postgres.catalogued_tables import Column, ColumnStatistics, ColumnValues
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.control_connection import READING, look
from pgdyno.postgres.inspection.column_statistics import read_column_statistics
from pgdyno.postgres.inspection.columns import read_column_values, read_columns
from pgdyno.workload.capture.name_resolution import table_column, why_unknown
from pgdyno.workload.capture.parameters import by_type
from pgdyno.workload.capture.positions import in_order
from pgdyno.workload.capture.ranges import measured

_Numbers: TypeAlias = NDArray[np.float64]
_MOST_NAMED = 5  # columns in a message
_EMPTY = "has no values"
_FREE_WIDTHS = 100  # arbitrary: of ranges with any end
_SHARES = np.linspace(0, 1, 101)  # of the rows: as many quantiles as the planner has by default
_POSITIONS = (np.arange(1000) + 0.5) / 1000  # of the beginnings of ranges among the rows: arbitrary
_PARTS = 10  # arbitrary: parts of a mixture of two widths
_STEPS = 60  # of a bisection: more than the digits of a float
_UNITS = {"smallint": 1.0, "integer": 1.0, "bigint": 1.0, "date": 86_400.0}
"""Least widths, by type."""


def read_draws(connection: Connection, workload: CapturedWorkload) -> tuple[ColumnDraws, tuple[str, ...]]:
    """Return how to draw values of columns, and notes on columns without values.

    Raises: UsageError if the database lacks a column; ServerError.
    """
    drawn = [one for kind in workload.transactions for call in kind.calls for one in call.parameters]
    wanted = {one.column for one in drawn if isinstance(one, OfColumn)}
    texts = [*(one.sql for one in workload.statements), *wanted]
    columns = read_columns(connection, workload.search_path, texts)
    known = {column.path: column for column in columns}
    if missing := sorted(wanted - known.keys()):
        raise UsageError(
            f'the database "{connection.info.dbname}" lacks {", ".join(missing[:_MOST_NAMED])}',
            hint="a copy has the original's tables: did the schema change since the capture, or is a column "
            "in the workload's file misspelt?",
        )
    found = {path: _found(connection, known[path], columns) for path in sorted(wanted)}
    ranges = [one for one in drawn if isinstance(one, RangeEnd)]
    return (
        ColumnDraws(
            {path: _draw(one) for path, one in found.items()},
            {path: one.values.highest or 0 for path, one in found.items()},
            _widths(connection, ranges, {path: one.values for path, one in found.items()}, columns),
        ),
        tuple(_notes(found)),
    )


@dataclass(frozen=True)
class _Found:
    """Values of a column, or why they are unknown; ``instead`` is then drawn, None: NULL."""

    values: ColumnValues = field(default_factory=ColumnValues)
    why: str = ""
    instead: Independent | None = None


def _found(connection: Connection, column: Column, columns: Sequence[Column]) -> _Found:
    """Return values of a table's column, or of the one that a view's shows, or why they are unknown.

    Row-level security may fail for a role without the application's settings. A foreign key without values
    has those of the key.
    """
    source = table_column(column, columns)
    if source is None:
        return _Found(why=why_unknown(column, columns))
    instead = by_type(source) if source.is_required else None
    if not source.is_readable:
        return _Found(why=f"the role may not read {source.path}", instead=instead)
    try:
        values = read_column_values(connection, source)
        if not values.is_known and (
            key := next((one for one in columns if one.path == source.references), None)
        ):
            values = replace(read_column_values(connection, key), highest=None)
    except ServerError as error:
        if isinstance(error.__cause__, psycopg.OperationalError):  # a timeout, a lock, a lost connection
            raise
        return _Found(why=f"{source.path} cannot be read ({error.message})", instead=instead)
    return _Found(values, "" if values.is_known else _EMPTY, instead)


def _notes(found: Mapping[str, _Found]) -> Iterator[str]:
    """Yield the columns without values, with their substitutes."""
    for instead, used in ((True, "values are drawn by type"), (False, "NULL is used")):
        its = {path: one for path, one in found.items() if one.why and (one.instead is not None) is instead}
        others = [one.why for one in its.values() if one.why != _EMPTY]
        yield from (f"{why}: {used}" for why in others[:_MOST_NAMED])
        if len(others) > _MOST_NAMED:
            yield f"{len(others) - _MOST_NAMED} further columns cannot be read: {used}"
        empty = [path for path, one in its.items() if one.why == _EMPTY]
        if len(empty) == 1:
            yield f"{empty[0]} has no values: {used}"
        elif empty:
            more = ", …" if len(empty) > _MOST_NAMED else ""
            yield f"{len(empty)} columns have no values: {used} ({', '.join(empty[:_MOST_NAMED])}{more})"
    for path, one in found.items():
        if one.values.unreadable:
            yield f"{path}: values that are not UTF-8 are not drawn"


def _draw(found: _Found) -> Mapping[str, object]:
    """Return how the driver draws a value of a column."""
    if found.values.dense is not None:
        low, high = found.values.dense
        return {"draw": "integer", "low": low, "high": high}
    if found.values.sample:
        return {"draw": "one-of", "values": in_order(found.values.sample)}
    return {"draw": "null"} if found.instead is None else independent_draw(found.instead)


def _widths(
    connection: Connection,
    ranges: Collection[RangeEnd],
    values: Mapping[str, ColumnValues],
    columns: Sequence[Column],
) -> Mapping[RangeEnd, tuple[float, ...]]:
    """Return equally likely widths of ranges; none for columns other than numbers and times."""
    sources = {one.path: table_column(one, columns) for one in columns if one.path in values}
    counted = {
        one.column: source for one in ranges if one.rows is not None and (source := sources[one.column])
    }
    with look(connection, READING):
        statistics = read_column_statistics(connection, list(counted.values())) if counted else {}
    found: dict[RangeEnd, tuple[float, ...]] = {}
    for one in ranges:
        source, its = sources[one.column], values[one.column]
        numbers = _numbers([*its.sample, *map(str, its.dense or ())])
        if source is None or not len(numbers):
            continue
        if one.widths or one.rows is None:
            found[one] = one.widths or _any_widths(numbers)
            continue
        of_planner, share = statistics.get(source.path), 1.0
        if of_planner is not None and len(its.sample) < its.rows and its.dense is None:
            numbers, share = _as_planned(of_planner, numbers)
        rows = its.rows * share
        found[one] = _for_rows(one, np.quantile(numbers, _SHARES), rows, _UNITS.get(source.type))
    return found


def _numbers(texts: Iterable[str]) -> _Numbers:
    return np.array([number for text in texts if (number := measured(text)) is not None], dtype=np.float64)


def _any_widths(numbers: _Numbers) -> tuple[float, ...]:
    chosen = np.quantile(numbers, np.random.default_rng(1).random((2, _FREE_WIDTHS)), method="nearest")
    return tuple(np.abs(chosen[0] - chosen[1]).tolist())


def _as_planned(statistics: ColumnStatistics, sample: _Numbers) -> tuple[_Numbers, float]:
    """Return about a thousand numbers as frequent as by the planner's statistics, or the sample without any.

    The second value is the share of the rows that they describe: they may be of one partition. A sample of a
    large table has neighbours of the same blocks: ranges would seem to have more rows.
    """
    bounds = _numbers(statistics.bounds)
    common = [
        (_numbers([one]), share) for one, share in zip(statistics.common, statistics.frequencies, strict=True)
    ]
    often = [np.repeat(number, round(share * len(_POSITIONS))) for number, share in common]
    rest = round((1 - statistics.null_fraction - sum(statistics.frequencies)) * len(_POSITIONS))
    if len(bounds) > 1 and rest > 1:
        often.append(np.interp(np.linspace(0, len(bounds) - 1, rest), np.arange(len(bounds)), bounds))
    planned = np.concatenate(often) if sum(map(len, often)) else sample
    is_within = (sample >= planned.min()) & (sample <= planned.max())
    share = float(np.mean(is_within))
    return (planned, share) if len(planned) > 1 and share else (sample, 1.0)


def _for_rows(one: RangeEnd, quantiles: _Numbers, rows: float, unit: float | None) -> tuple[float, ...]:
    """Return widths of ranges with the wanted mean number of rows; multiples of a unit are mixed.

    Rows between two quantiles are assumed to be spread evenly.
    """
    points, last = np.unique(quantiles, return_index=True)
    shares = np.append(_SHARES[last[1:] - 1], 1.0)
    beginnings = np.interp(_POSITIONS, _SHARES, quantiles)
    own = np.interp(beginnings, points, shares)
    ends_included = 0.0 if unit is None or one.is_open else unit
    wanted = (one.rows or 0.0) - (1.0 if unit is None else 0.0)  # a beginning is a row by itself

    def mean(width: float) -> float:
        return rows * float(np.mean(np.interp(beginnings + width + ends_included, points, shares) - own))

    low, high = 0.0, float(points[-1] - points[0]) + (unit or 0.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2 if unit is None else (low + high) // (2 * unit) * unit
        low, high = (middle, high) if mean(middle) < wanted else (low, middle)
    below, above = mean(low), mean(high)
    if unit is None or below >= wanted or above <= wanted:
        return (low if below >= wanted else float(f"{high:.6g}"),)
    wider = round(_PARTS * (wanted - below) / (above - below))
    return (low,) * (_PARTS - wider) + (high,) * wider
