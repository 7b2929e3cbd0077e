"""The cost of shared tables, as sentences and a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.verdicts.sharing_cost import SharingCost
from pgdyno.report.elements.tables import Table, columns
from pgdyno.studies.grids.scaling import bounded

_ALL = numbers.share(1)


@dataclass(frozen=True)
class Sharing:
    """The cost of a load's shared tables."""

    meaning: ClassVar[str] = (
        "Scaling is the rate as a multiple of one client's rate; kept is the scaling on shared tables "
        f"relative to that on own tables. At {_ALL} sharing costs nothing. Among many intervals some miss "
        "by chance"
    )
    table: Table
    sentences: tuple[str, ...]


def sharing(found: SharingCost) -> Sharing:
    """Return the scaling kept on shared tables by number of clients, with sentences."""
    return Sharing(_table(found), (*_sentences(found),))


def _table(found: SharingCost) -> Table:
    level = numbers.share(found.levels[0].ratio.level)
    return Table(
        f"{found.load}: the cost of sharing tables",
        columns("Clients", "Scaling kept", f"{level} interval", "Rounds", numbers_from=0),
        tuple(
            (str(one.level), numbers.share(one.ratio.point), bounded(one.ratio), str(one.rounds))
            for one in found.levels
        ),
    )


def _sentences(found: SharingCost) -> Iterator[str]:
    less = [str(one.level) for one in found.levels if one.ratio.high < 1]
    more = [str(one.level) for one in found.levels if one.ratio.low > 1]
    if less:
        yield f"Sharing has a cost at {listed(less)} clients: the interval is below {_ALL}"
    if more:
        yield (
            f"At {listed(more)} clients shared tables scale better than own ones, because of caches or by "
            f"chance: the interval is above {_ALL}"
        )
    if not less and not more:
        yield f"No cost of sharing was shown or excluded: every interval includes {_ALL}"
