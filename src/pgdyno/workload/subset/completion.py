"""Completion of a sample: foreign keys whose rows may be missing, until none is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pgdyno.postgres.catalogued_tables import Link


class OpenLinks:
    """Foreign keys that are to be looked at, because rows that have them have come since.

    Where they go in no circle, each comes once: all rows that have it are there by then. In a circle, or
    where a table refers to itself, they come until no row was added.
    """

    def __init__(self, links: Sequence[Link], whole: Collection[int]) -> None:
        self._links = [one for one in links if one.target_table not in whole]
        self._rank = _ranks(links)
        self._open = dict.fromkeys(range(len(self._links)))

    def take(self) -> Link | None:
        """Return the next one, None if all have their rows."""
        if not self._open:
            return None
        place = min(self._open, key=lambda one: (self._rank[self._links[one].table], one))
        del self._open[place]
        return self._links[place]

    def gained(self, table: int) -> None:
        """Take note that rows were added to a table."""
        self._open |= {place: None for place, one in enumerate(self._links) if one.table == table}


def _ranks(links: Sequence[Link]) -> Mapping[int, int]:
    """Return the place of each table in an order in which tables come before those that they refer to."""
    targets: dict[int, list[int]] = {}
    for one in links:
        targets.setdefault(one.table, []).append(one.target_table)
        targets.setdefault(one.target_table, [])
    ended: dict[int, int] = {}
    for first, its in targets.items():
        if first in ended:
            continue
        path, begun = [(first, iter(its))], {first, *ended}
        while path:  # depth first; no recursion, as chains of tables may be long
            table, left = path[-1]
            following = next((one for one in left if one not in begun), None)
            if following is None:
                ended[table] = -len(ended)
                path.pop()
            else:
                begun.add(following)
                path.append((following, iter(targets[following])))
    return ended
