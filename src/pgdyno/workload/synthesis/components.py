"""A table's columns as they are drawn together: by its keys, and by dependencies between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.postgres.catalogued_tables import Dependency, ForeignKey, StoredTable, TableColumn
from pgdyno.workload.synthesis.columns import has_order
from pgdyno.workload.synthesis.ordered_values import NOTHING_KNOWN

_DEPENDENT = 0.5  # arbitrary: below, columns are as good as independent
_NEARLY = -0.9  # arbitrary: of the number of distinct values as pg_stats has it


@dataclass(frozen=True)
class Component:
    """Columns that are drawn together: one, or those of a foreign key."""

    columns: tuple[str, ...]
    reference: ForeignKey | None = None


def components_of(table: StoredTable) -> list[Component]:
    """Return the columns of a table as they are drawn: those of foreign keys together, the longest first."""
    taken: set[str] = set()
    found = []
    for one in sorted(table.foreign_keys, key=lambda one: -len(one.columns)):
        if not taken & set(one.columns):
            taken |= set(one.columns)
            found.append(Component(one.columns, one))
    return found + [Component((one.name,)) for one in table.columns if one.name not in taken]


def in_order(parts: Sequence[Component], key: Sequence[str]) -> list[Component]:
    """Return the parts of a key in its order, which is that of their hierarchy.

    Parts that have columns beyond the key come last: their values lie apart by those within it.
    """
    return sorted(
        parts,
        key=lambda one: (
            not set(one.columns) <= set(key),
            min(key.index(name) for name in one.columns if name in key),
        ),
    )


def is_unique_in(table: StoredTable, columns: Sequence[str]) -> bool:
    """Whether no two rows of a table have the same values in these columns."""
    return any(set(key) <= set(columns) for key in table.keys)


def is_nearly_unique(table: StoredTable, one: Component) -> bool:
    """Whether the first part of a key alone tells nearly all rows apart: it then does all."""
    seen = column_of(table, one.columns[0]).statistics
    is_first = any(key[0] in one.columns and len(key) > 1 for key in table.keys)
    return is_first and seen is not None and seen.distinct <= _NEARLY and one.reference is None


def column_of(table: StoredTable, name: str) -> TableColumn:
    """Return the column of a table that has a name."""
    return next(one for one in table.columns if one.name == name)


def nulls_of(columns: Sequence[TableColumn], rows: int) -> int:
    """Return how many rows have no value."""
    if any(column.is_not_null for column in columns):
        return 0
    seen = [column.statistics for column in columns if column.statistics is not None]
    return min(rows, round(max((its.null_fraction for its in seen), default=0.0) * rows))


def used_dependencies(table: StoredTable) -> list[Dependency]:
    """Return the dependencies that rows are to follow: none that goes back to a column that follows.

    Where two columns determine each other, the one with more values leads.
    """
    found: list[Dependency] = []
    following: set[str] = set()
    leading: set[str] = set()
    for one in sorted(table.dependencies, key=lambda one: (-round(one.degree, 2), -_values(table, one))):
        [by, *more] = one.columns
        if more or one.degree < _DEPENDENT or not has_order(column_of(table, by)):
            continue
        if one.determined in following | leading or by in following:
            continue
        following.add(one.determined)
        leading.add(by)
        found.append(one)
    return found


def _values(table: StoredTable, one: Dependency) -> float:
    """Return how many values the determining column has."""
    seen = column_of(table, one.columns[0]).statistics or NOTHING_KNOWN
    return seen.distinct if seen.distinct >= 0 else -seen.distinct * (table.rows or 0)
