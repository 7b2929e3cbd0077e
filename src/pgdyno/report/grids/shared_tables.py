"""The cost of shared tables, as a table. Pure."""

from __future__ import annotations

from pgdyno.experiments.verdicts.sharing_cost import SharingCost
from pgdyno.model import numbers
from pgdyno.report.elements.tables import Table, columns
from pgdyno.report.grids.scaling import bounded


def sharing_table(found: SharingCost) -> Table:
    """Return the scaling left with shared tables, by the number of clients."""
    level = numbers.share(found.levels[0].ratio.level)
    return Table(
        f"{found.load}: of the scaling that own tables have, shared ones keep",
        columns("Clients", "Kept", f"{level} interval", "Rounds", numbers_from=0),
        tuple(
            (str(one.level), numbers.share(one.ratio.point), bounded(one.ratio), str(one.rounds))
            for one in found.levels
        ),
    )
