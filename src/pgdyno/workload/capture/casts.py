"""Casts of numbers that became parameters: without, the server may take another function or operator."""

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
    """Return the types that a statement's parameters are cast to, by number.

    ``types`` are those that the server infers, or its words where it cannot: then all ``numbers``, the types
    that constants had, are cast. ``substring(code from $1 for $2)`` is the function of two patterns, and that
    of numbers with casts. A column's values stay as they are: one of texts has others than numbers.
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
