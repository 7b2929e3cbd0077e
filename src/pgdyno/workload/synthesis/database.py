"""Generated rows of a database's tables: columns drawn together, and the keys that they reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from zlib import crc32

from pgdyno.postgres.catalogued_tables import Dependency, ForeignKey, StoredTable, TableColumn
from pgdyno.workload.synthesis.columns import has_made_up_values, has_order, ordered_values
from pgdyno.workload.synthesis.fillers import element_of, filler
from pgdyno.workload.synthesis.keys import (
    CompositeKey,
    Follower,
    FurtherPart,
    Key,
    PartedKey,
    SimpleKey,
    followers_of,
    referring_values,
)
from pgdyno.workload.synthesis.ordered_values import NOTHING_KNOWN, OrderedValues, RowCounts, distinct_values
from pgdyno.workload.synthesis.ordering import Ordering, kept_share
from pgdyno.workload.synthesis.rows import Determined, DrawnColumns, TableRows
from pgdyno.workload.synthesis.text_columns import SharedTexts, shared_texts

KEPT_WHOLE = 1000
"""Number of rows up to which the share does not apply: a part of a list of countries is useless."""
UNKNOWN_ROWS = 100
"""Number of rows of a table that was never analysed."""
_ROW_BYTES = 24 + 4  # header and line pointer
_DEPENDENT = 0.5  # arbitrary: columns below this degree are treated as independent
_NEARLY = -0.9  # arbitrary: n_distinct of a nearly unique column, as in pg_stats


@dataclass(frozen=True)
class Component:
    """Columns that are drawn together: a single one, or those of a foreign key."""

    columns: tuple[str, ...]
    reference: ForeignKey | None = None


class MadeUpDatabase:
    """Generates the rows of all tables of a database. ``share`` is the share of rows to generate."""

    def __init__(self, tables: Collection[StoredTable], share: float, seed: int) -> None:
        self._tables = {one.oid: one for one in tables}
        self._members: defaultdict[int, list[StoredTable]] = defaultdict(list)
        for one in tables:
            self._members[one.parent or one.oid].append(one)
        self._share, self._seed = share, seed
        self._known: dict[tuple[int, tuple[str, ...]], OrderedValues] = {}
        self._shared: dict[tuple[int, str], SharedTexts] = {}
        self._under_way: set[tuple[int, tuple[str, ...]]] = set()

    def rows_of(self, table: StoredTable) -> int:
        """Return the number of rows to generate for a table."""
        if table.rows is None:
            return UNKNOWN_ROWS
        return max(min(round(table.rows), KEPT_WHOLE), round(table.rows * self._share))

    def table(self, oid: int) -> TableRows:
        """Return the generated rows of a table."""
        table = self._tables[oid]
        parts = tuple(self._parts(table))
        return TableRows(self._limited_rows(table), parts, self.row_bytes(table))

    def row_bytes(self, table: StoredTable) -> int:
        """Return the approximate size of a row in bytes, as text and on disk."""
        widths = ((one.statistics or NOTHING_KNOWN).width_bytes for one in table.columns)
        return _ROW_BYTES + sum(widths)

    def _limited_rows(self, table: StoredTable, below: frozenset[int] = frozenset()) -> int:
        """Return a table's number of rows: at most the number of keys referenced by its unique columns."""
        rows, below = self.rows_of(table), below | {table.oid}
        for one in components_of(table):
            if one.reference is not None and is_unique_in(table, one.columns):
                others = [other for other in self._members[one.reference.table] if other.oid not in below]
                rows = min(rows, sum(self._limited_rows(other, below) for other in others) or rows)
        return rows

    def _parts(self, table: StoredTable) -> Iterator[DrawnColumns]:
        """Yield a table's parts, each after those that it depends on."""
        components = components_of(table)
        rows = self._limited_rows(table)
        followers = self._followers(table, components)
        tied = followers.keys() | {first for first, _ in followers.values()}
        determined = {its.determined for its in used_dependencies(table)}
        order = sorted(  # those that others depend on come first
            components,
            key=lambda one: (
                one.columns[0] in determined and one.columns not in tied,
                one.columns in followers,
            ),
        )
        places = {one.columns: number for number, one in enumerate(order)}
        for one in order:
            columns = [column_of(table, name) for name in one.columns]
            seed = self._seed_of(table, one.columns)
            nulls = nulls_of(columns, rows)
            if one.reference is None and not has_order(columns[0]):
                fill = filler(columns[0], seed, self._shared_texts(table, columns[0]))
                yield DrawnColumns(one.columns, seed, fill=fill, nulls=nulls)
                continue
            values = self._values(table, one)
            if one.columns in followers:
                by, follower = followers[one.columns]
                yield DrawnColumns(one.columns, seed, values, None, (places[by], follower), nulls=nulls)
                continue
            yield DrawnColumns(
                one.columns,
                seed,
                values,
                self._ordering(table, one),
                determined=None if one.columns in tied else self._determined(one, table, places),
                nulls=nulls,
            )

    def _followers(
        self, table: StoredTable, components: Sequence[Component]
    ) -> dict[tuple[str, ...], tuple[tuple[str, ...], Follower]]:
        """Return the following components of composite keys, each with the component that it follows."""
        found: dict[tuple[str, ...], tuple[tuple[str, ...], Follower]] = {}
        leading: set[tuple[str, ...]] = set()
        for key in table.keys:
            parts = [one for one in components if set(one.columns) & set(key)]
            if len(parts) < 2 or not all(self._is_orderly(table, one) for one in parts):
                continue
            if any(is_unique_in(table, one.columns) for one in parts):
                continue
            first, *others = in_order(parts, key)
            if any(one.columns in found.keys() | leading for one in others) or first.columns in found:
                continue  # of overlapping keys, only the first is kept
            leading.add(first.columns)
            made = followers_of(
                [
                    FurtherPart(
                        self._values(table, one), not set(one.columns) <= set(key), self._ordering(table, one)
                    )
                    for one in others
                ],
            )
            for one, follower in zip(others, made, strict=True):
                found[one.columns] = first.columns, follower
        return found

    def _ordering(self, table: StoredTable, one: Component) -> Ordering:
        values = self._values(table, one)
        made, seen = values.distribution, column_of(table, one.columns[values.leading]).statistics
        wanted = 0.0 if seen is None or seen.correlation is None else seen.correlation
        kept = kept_share(wanted, made.concentration(2), made.concentration(3))
        return Ordering(made.rows, kept, self._seed_of(table, one.columns))

    def _determined(
        self, one: Component, table: StoredTable, places: Mapping[tuple[str, ...], int]
    ) -> Determined | None:
        """Return the part that a component depends on according to extended statistics; None without one."""
        if one.reference is not None or is_unique_in(table, one.columns):
            return None
        for its in used_dependencies(table):
            if (its.determined,) == one.columns and its.columns in places:
                by = self._values(table, Component(its.columns)).distribution
                return Determined(places[its.columns], by.values, its.degree) if by.rows else None
        return None

    def _is_orderly(self, table: StoredTable, one: Component) -> bool:
        return one.reference is not None or has_order(column_of(table, one.columns[0]))

    def _values(self, table: StoredTable, one: Component) -> OrderedValues:
        """Return a component's values, which are generated once."""
        name = table.oid, one.columns
        if name not in self._known:
            # Keys may reference each other: generating one may already have stored this one. Keep that.
            self._known.setdefault(name, self._new_values(table, one))
        return self._known[name]

    def _new_values(self, table: StoredTable, one: Component) -> OrderedValues:
        place, rows = (table.oid, one.columns), self._limited_rows(table)
        is_unique = is_unique_in(table, one.columns) or is_nearly_unique(table, one)
        of_rows = rows
        if not any(set(one.columns) & set(key) for key in table.keys if len(key) > 1):
            of_rows -= nulls_of([column_of(table, name) for name in one.columns], rows)
        size = RowCounts(of_rows, table.rows or rows, self._most_repeats(table, one))
        key = None
        if one.reference is not None and place not in self._under_way:
            self._under_way.add(place)
            try:
                key = self._key(one.reference)
            finally:
                self._under_way.discard(place)
        if one.reference is not None and key is not None and key.rows:
            seen = column_of(table, one.columns[key.leading]).statistics or NOTHING_KNOWN
            original = sum(its.rows or 0 for its in self._members[one.reference.table])
            return referring_values(seen, key, size, original, is_unique=is_unique)
        column = column_of(table, one.columns[0])
        seed = self._seed_of(table, one.columns)
        shared = self._shared_texts(table, column)
        made = ordered_values(
            column, size, is_unique=is_unique, literals=table.literals, seed=seed, shared=shared
        )
        if len(one.columns) == 1:
            return made
        return replace(made, render=lambda places: made.render(places) * len(one.columns))

    def _shared_texts(self, table: StoredTable, column: TableColumn) -> SharedTexts | None:
        """Return the texts of a column in all partitions of a table; None for other columns and tables."""
        members = self._members[table.parent or table.oid]
        if len(members) == 1 or not has_made_up_values(column):
            return None
        first = members[0]
        if (first.oid, column.name) not in self._shared:
            columns = [column_of(one, column.name) for one in members]
            if column.element is not None:
                columns = [element_of(one) for one in columns]
            parts = [
                (self.rows_of(one) - nulls_of([its], self.rows_of(one)), its.statistics)
                for one, its in zip(members, columns, strict=True)
                if its.statistics is not None
            ]
            if not parts:
                return None
            self._shared[first.oid, column.name] = shared_texts(
                columns[0],
                parts,
                frozenset().union(*(one.literals for one in members)),
                self._seed_of(first, (column.name,)),
            )
        shared = self._shared[first.oid, column.name]
        return shared.of_part([one.oid for one in members].index(table.oid), len(members))

    def _most_repeats(self, table: StoredTable, one: Component) -> int | None:
        """Return how many rows may share a value, since a key's other columns distinguish them; None: any."""
        found = None
        for key in table.keys:
            parts = in_order([part for part in components_of(table) if set(part.columns) & set(key)], key)
            if (
                len(parts) > 1
                and parts[0].columns == one.columns
                and all(self._is_orderly(table, part) for part in parts)
            ):
                ways = prod(self._ways(table, part, key) for part in parts[1:])
                found = ways if found is None else min(found, ways)
        return found

    def _ways(self, table: StoredTable, part: Component, key: Sequence[str]) -> int:
        """Return the number of distinct values of a part of a key within the key's columns."""
        if set(part.columns) <= set(key):
            return max(1, self._values(table, part).distribution.values)
        within = [column_of(table, name) for name in part.columns if name in key]
        each = (distinct_values(one.statistics or NOTHING_KNOWN, self.rows_of(table)) for one in within)
        return max(1, round(prod(each)))

    def _key(self, reference: ForeignKey) -> Key | None:
        """Return the key that a foreign key references, with columns in the foreign key's order, or None."""
        keys = [self._key_of(one, reference.referenced) for one in self._members[reference.table]]
        found = [one for one in keys if one is not None and one.rows]
        if len(found) < len([one for one in keys if one is None or one.rows]) or not found:
            return None
        return found[0] if len(found) == 1 else PartedKey(tuple(found))

    def _key_of(self, table: StoredTable, columns: tuple[str, ...]) -> Key | None:
        """Return a table's key over these columns; None if they are not drawn as a key."""
        components = [one for one in components_of(table) if set(one.columns) & set(columns)]
        drawn = [name for one in components for name in one.columns]
        if sorted(drawn) != sorted(columns) or not all(self._is_orderly(table, one) for one in components):
            return None
        if len(components) == 1:
            values = self._values(table, components[0])
            return SimpleKey(values, tuple(drawn.index(name) for name in columns))
        followers = self._followers(table, components_of(table))
        first = next((one for one in components if one.columns not in followers), None)
        others = [one for one in components if one is not first]
        if first is None or any(followers.get(one.columns, [None])[0] != first.columns for one in others):
            return None
        drawn = [name for one in (first, *others) for name in one.columns]
        return CompositeKey(
            self._values(table, first),
            tuple(followers[one.columns][1] for one in others),
            tuple(drawn.index(name) for name in columns),
        )

    def _seed_of(self, table: StoredTable, columns: Sequence[str]) -> int:
        return crc32("\0".join((table.path, *columns)).encode()) ^ self._seed


def components_of(table: StoredTable) -> list[Component]:
    """Return a table's components: the columns of foreign keys together, the longest foreign key first."""
    taken: set[str] = set()
    found = []
    for one in sorted(table.foreign_keys, key=lambda one: -len(one.columns)):
        if not taken & set(one.columns):
            taken |= set(one.columns)
            found.append(Component(one.columns, one))
    return found + [Component((one.name,)) for one in table.columns if one.name not in taken]


def in_order(parts: Sequence[Component], key: Sequence[str]) -> list[Component]:
    """Return the parts of a key in the order of its columns, which is that of their hierarchy.

    Parts with columns outside the key come last: only their columns within the key distinguish their values.
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
    """Whether the first part of a key is nearly unique alone; it is then generated as unique."""
    seen = column_of(table, one.columns[0]).statistics
    is_first = any(key[0] in one.columns and len(key) > 1 for key in table.keys)
    return is_first and seen is not None and seen.distinct <= _NEARLY and one.reference is None


def column_of(table: StoredTable, name: str) -> TableColumn:
    """Return a table's column by name."""
    return next(one for one in table.columns if one.name == name)


def nulls_of(columns: Sequence[TableColumn], rows: int) -> int:
    """Return the number of rows with NULL."""
    if any(column.is_not_null for column in columns):
        return 0
    seen = [column.statistics for column in columns if column.statistics is not None]
    return min(rows, round(max((its.null_fraction for its in seen), default=0.0) * rows))


def used_dependencies(table: StoredTable) -> list[Dependency]:
    """Return the dependencies to reproduce, without chains: a determined column determines no other.

    If two columns determine each other, the one with more values determines the other.
    """
    found: list[Dependency] = []
    following: set[str] = set()
    leading: set[str] = set()
    for one in sorted(table.dependencies, key=lambda one: (-round(one.degree, 2), -_distinct_of(table, one))):
        [by, *more] = one.columns
        if more or one.degree < _DEPENDENT or not has_order(column_of(table, by)):
            continue
        if one.determined in following | leading or by in following:
            continue
        following.add(one.determined)
        leading.add(by)
        found.append(one)
    return found


def _distinct_of(table: StoredTable, one: Dependency) -> float:
    """Return the number of distinct values of the determining column."""
    seen = column_of(table, one.columns[0]).statistics or NOTHING_KNOWN
    return seen.distinct if seen.distinct >= 0 else -seen.distinct * (table.rows or 0)
