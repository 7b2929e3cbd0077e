"""Plan of a sample: which foreign key each table follows, and which rows it gives by that.

A table follows at most one of its foreign keys: its rows come with the rows that this key refers to, so that
joins find as many rows for each as in the original. What else sampled rows refer to is added afterwards
(``completion``), and brings no rows along: otherwise nearly everything would follow from anything.
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
"""Rows of a table up to which all are taken: lists of countries would lose their meaning."""
_WHOLE_BYTES = 128 << 10  # of a table whose rows nobody has counted: 1,000 rows of usual width
_TEXTS_ARE_EQUAL = frozenset({"smallint", "integer", "bigint", "uuid"})
"""Types whose equal values have equal texts, so that equal hashes; integers of different sizes too."""


@dataclass(frozen=True)
class TableSample:
    """A table with its rows in a sample; no row is in two of the choices. ``follows``: the foreign key."""

    table: LinkedTable
    choices: tuple[Choice, ...]
    follows: Link | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all rows are taken."""
        return AllRows() in self.choices


def plan_sample(
    tables: Sequence[LinkedTable], links: Sequence[Link], start: int | None = None
) -> tuple[TableSample, ...]:
    """Return the rows to take of each table, tables that others follow first.

    ``start`` is sampled by itself, however small it is, and what leads to it follows it before any other.
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
    """Whether all rows of a table are taken because they are few."""
    return table.size_bytes <= _WHOLE_BYTES if table.rows is None else table.rows <= KEPT_WHOLE


def _may_be_followed(link: Link, tables: Mapping[int, LinkedTable], whole: set[int]) -> bool:
    """Whether a foreign key leads from all rows of one table to sampled rows of another one."""
    return (
        link.is_valid
        and link.table != link.target_table
        and whole.isdisjoint((link.table, link.target_table))
        and link.source == tables[link.table].relation
        and link.target == tables[link.target_table].relation
    )


def _followed(tables: Mapping[int, LinkedTable], links: Sequence[Link], start: int | None) -> dict[int, Link]:
    """Return the foreign key that each table follows: one at most, and never in a circle."""
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
    """Return the place of a foreign key among those that a table could follow, the best first.

    Best is the row that this one is a part of: the key is never NULL, and in the primary key, or deleted
    with it. Of several, that of the largest table: it has the fewest rows for each of its own, and so the
    sample needs the fewest rows of other tables.
    """
    is_part = link.is_cascading or {one.name for one in link.columns} <= set(tables[link.table].key)
    size = tables[link.target_table].rows or 0.0
    return not link.is_required, not is_part, -size, link.source.path, link.name


def _leads_to(table: int, other: int, followed: Mapping[int, Link]) -> bool:
    """Whether a table follows another one, directly or not, or is it."""
    while table != other:
        if table not in followed:
            return False
        table = followed[table].target_table
    return True


def _outwards(tables: Iterable[int], followed: Mapping[int, Link]) -> list[int]:
    """Return tables in an order in which each comes after the one that it follows."""

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
    """Whether a foreign key's values have the hash by which the rows at its end are chosen."""
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
    """Return a foreign key with its columns in the order in which those at its end are hashed."""
    assert isinstance(chosen, ByHash)  # noqa: S101 — _has_its_hash has looked
    pairs = zip(link.columns, link.key, link.operators, strict=True)
    columns, key, operators = zip(
        *sorted(pairs, key=lambda one: chosen.columns.index(one[1].name)), strict=True
    )
    return replace(link, columns=columns, key=key, operators=operators)
