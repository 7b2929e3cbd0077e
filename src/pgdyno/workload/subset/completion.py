"""Completion of a sample: the foreign keys to check until no referenced row is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pgdyno.postgres.catalogued_tables import Link


class OpenLinks:
    """Foreign keys to check because rows were added to their tables.

    Outside circles each foreign key is checked once, when its table is complete. Those in a circle, or of a
    table that references itself, are checked until no row was added.
    """

    def __init__(self, links: Sequence[Link], whole: Collection[int]) -> None:
        self._links = [one for one in links if one.target_table not in whole]
        self._rank = _ranks(links)
        self._open = dict.fromkeys(range(len(self._links)))

    def take(self) -> Link | None:
        """Return the next foreign key; None if no row is missing."""
        if not self._open:
            return None
        place = min(self._open, key=lambda one: (self._rank[self._links[one].table], one))
        del self._open[place]
        return self._links[place]

    def gained(self, table: int) -> None:
        """Reopen a table's foreign keys after rows were added to it."""
        self._open |= {place: None for place, one in enumerate(self._links) if one.table == table}


def _ranks(links: Sequence[Link]) -> Mapping[int, int]:
    """Return each table's rank in an order with referencing tables before referenced ones."""
    targets: dict[int, list[int]] = {}
    for one in links:
        targets.setdefault(one.table, []).append(one.target_table)
        targets.setdefault(one.target_table, [])
    ended: dict[int, int] = {}
    for first, its in targets.items():
        if first in ended:
            continue
        path, begun = [(first, iter(its))], {first, *ended}
        while path:  # depth first; without recursion, since chains of tables may be long
            table, left = path[-1]
            following = next((one for one in left if one not in begun), None)
            if following is None:
                ended[table] = -len(ended)
                path.pop()
            else:
                begun.add(following)
                path.append((following, iter(targets[following])))
    return ended
