"""The cost of shared tables, in words and as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.experiments.verdicts.sharing_cost import SharingCost
from pgdyno.model import numbers
from pgdyno.report.elements.tables import Table, columns
from pgdyno.report.grids.scaling import bounded
from pgdyno.report.text.words import listed


@dataclass(frozen=True)
class Sharing:
    """The cost of a load's shared tables."""

    table: Table
    sentences: tuple[str, ...]


def sharing(found: SharingCost) -> Sharing:
    """Return the scaling left with shared tables by the number of clients, and what that says."""
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
    nothing_lost = numbers.share(1)
    yield (
        "Scaling is the rate as a multiple of one client's; kept is the share of the scaling on own tables "
        f"that is left on shared ones. At {nothing_lost} sharing costs nothing"
    )
    less = [str(one.level) for one in found.levels if one.ratio.high < 1]
    more = [str(one.level) for one in found.levels if one.ratio.low > 1]
    if less:
        yield f"Sharing costs at {listed(less)} clients: the interval lies below {nothing_lost}"
    if more:
        yield (
            f"At {listed(more)} clients shared tables scale better than own ones, which caches can do: the "
            f"interval lies above {nothing_lost}"
        )
    if not less and not more:
        yield f"No cost is shown, nor that there is none: every interval includes {nothing_lost}"
