"""pgdyno's configurations against each peer's, as tables for page and terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.base.text import aligned, lower_first
from pgdyno.measure.verdicts.peer_effects import (
    PeerEffects,
    own_arms_of,
    peer_effects,
    peers_of,
    reported,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.plan import PLAN, WITHOUT
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable

FASTEST_LOOKS_FASTER = (
    "The fastest peer is chosen by these same figures. This can make pgdyno's advantage over it look smaller "
    "than it is, not larger."
)


def peer_tables(experiment: Experiment) -> tuple[StyledTable, ...]:
    """Return a table per workload with enough rounds, the fastest peer first."""
    ours, level = own_arms_of(experiment), numbers.share(experiment.design.level)
    return tuple(_table(one, ours, level) for one in peer_effects(experiment))


def peers_text(experiment: Experiment) -> str:
    """Return the tables as text; empty if no peers were measured."""
    if not peers_of(experiment):
        return ""
    tables = peer_tables(experiment)
    lines = [line for one in tables for line in _lines(one)]
    missing = [name for name in reported(experiment) if name not in {one.title for one in tables}]
    why = "too few rounds are valid on all servers, or more transactions failed on one server"
    if not lines:
        return f"pgdyno cannot be compared with each peer: {why}.\n"
    if missing:
        lines.append(f"Not compared on {', '.join(missing)}: {why}.")
    return "\n".join([*lines, FASTEST_LOOKS_FASTER]) + "\n"


def _table(effects: PeerEffects, ours: Sequence[str], level: str) -> StyledTable:
    return StyledTable(
        effects.workload,
        f"Throughput of pgdyno's configurations against each peer's ({level} intervals){_left_out(effects)}",
        tuple(map(_head, ours)),
        tuple(
            (_name(peer, effects), tuple(_cell(ratios.get(arm)) for arm in ours))
            for peer, ratios in effects.ratios.items()
        ),
        corner="Peer",
    )


def _lines(table: StyledTable) -> Iterator[str]:
    rows = ((name, *(cell.narrow or cell.text for cell in cells)) for name, cells in table.rows)
    yield f"{table.title}: {lower_first(table.caption)}"
    yield from aligned([(table.corner, *(head.narrow for head in table.heads)), *rows], "  ")


def _left_out(effects: PeerEffects) -> str:
    """Return the peers and pairs that were not compared; empty if all were."""
    if not effects.left_out:
        return ""
    return f"; not compared, because more transactions failed on one side: {', '.join(effects.left_out)}"


def _name(peer: str, effects: PeerEffects) -> str:
    return f"{peer} (fastest)" if peer == effects.fastest else peer


def _head(arm: str) -> StyledCell:
    """Return the title of a column, with the omitted part below it."""
    whole, is_less, part = arm.partition(WITHOUT)
    title = (whole.rstrip("-") or PLAN).replace("-", " ")
    return StyledCell(title, f"without {part}" if is_less else "", narrow=arm)


def _cell(interval: Interval | None) -> StyledCell:
    if interval is None:
        return StyledCell(NOTHING)
    effect, bounds = (
        numbers.change_within(interval.point, interval.low, interval.high),
        numbers.interval(interval),
    )
    return StyledCell(effect, bounds, narrow=f"{effect} ({bounds})")
