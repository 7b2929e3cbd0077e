"""pgdyno's configurations beside each peer's, as tables for page and terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.experiments.verdicts.peer_effects import PeerEffects, own_arms_of, peer_effects, peers_of
from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.elements.tables import Column, Table

FASTEST_LOOKS_FASTER = (
    "The fastest peer is named after looking at these same figures: that can make pgdyno's advantage over it "
    "look smaller than it is, not larger."
)


def peer_tables(experiment: Experiment) -> tuple[Table, ...]:
    """Return a table for each workload with enough rounds, the fastest peer first."""
    return tuple(_table(experiment, one) for one in peer_effects(experiment))


def peers_text(experiment: Experiment) -> str:
    """Return the tables as text; nothing if no peers were measured."""
    if not peers_of(experiment):
        return ""
    tables = peer_tables(experiment)
    if not tables:
        return "How pgdyno compares with each peer is not known: in too few rounds all servers count.\n"
    return "\n".join([*(line for table in tables for line in _lines(table)), FASTEST_LOOKS_FASTER]) + "\n"


def _table(experiment: Experiment, effects: PeerEffects) -> Table:
    ours, level = own_arms_of(experiment), numbers.share(experiment.design.level)
    return Table(
        f"{effects.workload}: throughput of pgdyno's configurations against each peer's ({level} intervals)",
        (Column("Peer"), *(Column(arm, is_number=True) for arm in ours)),
        tuple(
            (f"{peer} (fastest)" if peer == effects.fastest else peer, *(_cell(ratios[arm]) for arm in ours))
            for peer, ratios in effects.ratios.items()
        ),
    )


def _cell(interval: Interval) -> str:
    effect = numbers.change_within(interval.point, interval.low, interval.high)
    return f"{effect} ({numbers.interval(interval)})"


def _lines(table: Table) -> Iterator[str]:
    rows = [tuple(column.title for column in table.columns), *table.rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    yield table.caption
    for row in rows:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(["", first, *others]).rstrip()
