"""Plan of a sample: the foreign key that each table follows, and the resulting choice of rows.

A table follows at most one of its foreign keys: its rows are sampled together with the rows that this key
references, so joins find as many rows per referenced row as in the original. Other referenced rows are added
afterwards (``completion``), without rows that reference them; otherwise the sample would contain nearly
everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.postgres.catalogued_tables import (
    AllRows,
    ByHash,
    ByLinkHash,
    Choice,
    Link,
    LinkedTable,
    OfChosen,
    Unlinked,
)

KEPT_WHOLE = 1000
"""Number of rows up to which a table is copied completely: a sample of a list of countries is useless."""
_WHOLE_BYTES = 128 << 10  # for a table without a row count: 1,000 rows of usual width
_TEXTS_ARE_EQUAL = frozenset({"smallint", "integer", "bigint", "uuid"})
"""Types with equal texts, hence equal hashes, for equal values; also between integers of different sizes."""


@dataclass(frozen=True)
class TableSample:
    """A table with its choices of rows, which do not overlap. ``follows`` is the followed foreign key."""

    table: LinkedTable
    choices: tuple[Choice, ...]
    follows: Link | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all rows are in the sample."""
        return AllRows() in self.choices


def plan_sample(
    tables: Sequence[LinkedTable], links: Sequence[Link], start: int | None = None
) -> tuple[TableSample, ...]:
    """Return the choice of rows for each table, with followed tables first.

    ``start`` is sampled independently, however small it is, and tables that reference it, directly or
    indirectly, follow it rather than another table.
    """
    by_oid = {one.oid: one for one in tables}
    temporal = {one.target_table for one in links if one.is_temporal}
    whole = {one.oid for one in tables if one.oid in temporal or (is_small(one) and one.oid != start)}
    followed = _followed(by_oid, [one for one in links if _may_be_followed(one, by_oid, whole)], start)
    made: dict[int, TableSample] = {}
    for oid in _outwards(by_oid, followed):
        made[oid] = _sample_of(by_oid[oid], followed.get(oid), made, is_whole=oid in whole)
    return tuple(made.values())


def is_small(table: LinkedTable) -> bool:
    """Whether a table is small enough to copy all its rows."""
    return table.size_bytes <= _WHOLE_BYTES if table.rows is None else table.rows <= KEPT_WHOLE


def _may_be_followed(link: Link, tables: Mapping[int, LinkedTable], whole: set[int]) -> bool:
    """Whether a foreign key is valid, and leads from one sampled table to another one in all its rows."""
    return (
        link.is_valid
        and link.table != link.target_table
        and whole.isdisjoint((link.table, link.target_table))
        and link.source == tables[link.table].relation
        and link.target == tables[link.target_table].relation
    )


def _followed(tables: Mapping[int, LinkedTable], links: Sequence[Link], start: int | None) -> dict[int, Link]:
    """Return the foreign key that each table follows: at most one, without circles."""
    found: dict[int, Link] = {}
    ranked = sorted(links, key=lambda one: _rank(one, tables))
    reached = {start}
    while start is not None:
        link = next((one for one in ranked if one.target_table in reached and one.table not in reached), None)
        if link is None:
            break
        found[link.table] = link
        reached.add(link.table)
    for link in ranked:
        if link.table not in reached | found.keys() and not _leads_to(link.target_table, link.table, found):
            found[link.table] = link
    return found


def _rank(link: Link, tables: Mapping[int, LinkedTable]) -> tuple[bool, bool, float, str, str]:
    """Return a sort key for the foreign keys that a table could follow; the smallest is the best.

    The best one references the row that this row is a part of: it is never NULL, and is in the primary key or
    cascades deletes. Of several, the one that references the largest table is best: that table has the fewest
    referencing rows per row, so the sample needs the fewest rows of other tables.
    """
    is_part = link.is_cascading or {one.name for one in link.columns} <= set(tables[link.table].key)
    size = tables[link.target_table].rows or 0.0
    return not link.is_required, not is_part, -size, link.source.path, link.name


def _leads_to(table: int, other: int, followed: Mapping[int, Link]) -> bool:
    """Whether a table follows another one, directly or indirectly, or is the same table."""
    while table != other:
        if table not in followed:
            return False
        table = followed[table].target_table
    return True


def _outwards(tables: Iterable[int], followed: Mapping[int, Link]) -> list[int]:
    """Return tables in an order with each after the one that it follows."""

    def steps(table: int) -> int:
        count = 0
        while table in followed:
            table, count = followed[table].target_table, count + 1
        return count

    return sorted(tables, key=steps)


def _sample_of(
    table: LinkedTable, link: Link | None, made: Mapping[int, TableSample], *, is_whole: bool
) -> TableSample:
    own = ByHash(table.key)
    if is_whole:
        return TableSample(table, (AllRows(),))
    if link is None:
        return TableSample(table, (own,))
    chosen = made[link.target_table].choices
    linked = ByLinkHash(_in_order(link, chosen[0])) if _has_its_hash(link, chosen) else OfChosen(link, chosen)
    choices = (linked,) if link.is_required else (linked, Unlinked(link, own))
    return TableSample(table, choices, link)


def _has_its_hash(link: Link, chosen: tuple[Choice, ...]) -> bool:
    """Whether hashing a foreign key's values selects the same rows as hashing the referenced key."""
    types = [(one.type, its.type) for one, its in zip(link.columns, link.key, strict=True)]
    are_equal = all(
        {one, its} <= _TEXTS_ARE_EQUAL and (one == its or "uuid" not in (one, its)) for one, its in types
    )
    return (
        are_equal
        and len(chosen) == 1
        and isinstance(chosen[0], ByHash)
        and sorted(chosen[0].columns) == sorted(one.name for one in link.key)
    )


def _in_order(link: Link, chosen: Choice) -> Link:
    """Return a foreign key with its columns in the order in which the referenced columns are hashed."""
    assert isinstance(chosen, ByHash)  # noqa: S101 — _has_its_hash has checked
    pairs = zip(link.columns, link.key, link.operators, strict=True)
    columns, key, operators = zip(
        *sorted(pairs, key=lambda one: chosen.columns.index(one[1].name)), strict=True
    )
    return replace(link, columns=columns, key=key, operators=operators)
