"""How a statement uses rows: the columns that it returns, and whether it inserts or deletes rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from pgdyno.model.experiments.captured import CapturedWorkload, ColumnValue, Parameter, ReturnedValue
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.name_resolution import column_of, columns_of, table_column
from pgdyno.workload.capture.syntax import tree


@dataclass(frozen=True)
class RowUse:
    """The returned columns in order, None for other expressions.

    ``is_new``: they are of inserted rows. ``is_deleted``: the statement deletes the rows.
    """

    returned: tuple[Column | None, ...] = ()
    is_new: bool = False
    is_deleted: bool = False


def row_use(sql: str, columns: Sequence[Column]) -> RowUse:
    """Return how a statement uses rows."""
    parsed = tree(sql)
    if isinstance(parsed, exp.Insert):
        returning = parsed.args.get("returning")
        shown = () if returning is None else returning.expressions
        conflict = parsed.args.get("conflict")
        is_new = conflict is None or not conflict.expressions  # without DO UPDATE SET …
        return RowUse(_columns(shown, parsed, columns), is_new=is_new)
    if isinstance(parsed, exp.Select):
        return RowUse(_columns(parsed.expressions, parsed, columns))
    return RowUse(is_deleted=isinstance(parsed, exp.Delete))


def with_values_for_returned(workload: CapturedWorkload, columns: Sequence[Column]) -> CapturedWorkload:
    """Return a workload with each returned value replaced by a drawn value of the same column.

    This is for planning statements without executing them in order.
    """
    returned = {one.name: row_use(one.sql, columns).returned for one in workload.statements}

    def drawn(one: Parameter) -> Parameter:
        if not isinstance(one, ReturnedValue):
            return one
        places = returned.get(one.statement, ())
        column = places[one.column - 1] if one.column <= len(places) else None
        return one if column is None else ColumnValue(column.path)

    return replace(
        workload,
        transactions=tuple(
            replace(
                kind,
                calls=tuple(
                    replace(call, parameters=tuple(map(drawn, call.parameters))) for call in kind.calls
                ),
            )
            for kind in workload.transactions
        ),
    )


def _columns(
    shown: Sequence[exp.Expression], query: exp.Expression, columns: Sequence[Column]
) -> tuple[Column | None, ...]:
    """Return columns up to a star that cannot be resolved: positions after it are unknown."""
    found: list[Column | None] = []
    for one in shown:
        if isinstance(one, exp.Star):
            return (*found, *_all_of(query, columns))
        if one.is_star:
            break
        found.append(column_of(one.this if isinstance(one, exp.Alias) else one, columns))
    return tuple(found)


def _all_of(query: exp.Expression, columns: Sequence[Column]) -> Iterator[Column | None]:
    """Yield the columns of a query's only table; none if it names several."""
    tables = list(query.find_all(exp.Table))
    if len(tables) == 1:
        yield from (table_column(one, columns) for one in columns_of(tables[0], columns))
