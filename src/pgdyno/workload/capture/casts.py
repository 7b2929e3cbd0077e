"""Casts of numbers that became parameters: without them, the server may choose a different function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.model.experiments.captured import ColumnValue
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.parameters import parameters_of

_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision", "oid"})


def casts_of(
    sql: str, types: Sequence[str] | str, numbers: Mapping[int, str], columns: Sequence[Column], seen: Seen
) -> dict[int, str]:
    """Return the types to which a statement's parameters are cast, by number.

    ``numbers`` has the types of the constants that were numbers. ``types`` are the inferred types, or the
    server's error message; after an error, all ``numbers`` are cast. Without casts,
    ``substring(code from $1 for $2)`` resolves to the function that takes patterns. Values of a column are
    not cast: a text column has values that are not numbers.
    """
    if isinstance(types, str):
        return dict(numbers)
    others = {one: its for one, its in numbers.items() if types[one - 1] not in _NUMBERS}
    if not others:
        return {}
    found = parameters_of(sql, types, columns, seen)
    return {
        one: its
        for one, its in others.items()
        if one not in found.new and not isinstance(found.drawn[one - 1], ColumnValue)
    }
