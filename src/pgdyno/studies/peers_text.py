"""pgdyno's configurations against each peer's, as tables for page and terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.measure.verdicts.peer_effects import (
    PeerEffects,
    own_arms_of,
    peer_effects,
    peers_of,
    reported,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.terms import PLAN, WITHOUT
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
    ours, level = own_arms_of(experiment), numbers.share(experiment.design.level)
    effects = peer_effects(experiment)
    lines = [line for one in effects for line in _lines(one, ours, level)]
    missing = [name for name in reported(experiment) if name not in {one.workload for one in effects}]
    why = "too few rounds are valid on all servers, or more transactions failed on one server"
    if not lines:
        return f"pgdyno cannot be compared with each peer: {why}.\n"
    if missing:
        lines.append(f"Not compared on {', '.join(missing)}: {why}.")
    return "\n".join([*lines, FASTEST_LOOKS_FASTER]) + "\n"


def _table(effects: PeerEffects, ours: Sequence[str], level: str) -> StyledTable:
    return StyledTable(
        effects.workload,
        f"T{_caption(level)[1:]}{_left_out(effects)}",
        tuple(map(_head, ours)),
        tuple(
            (_name(peer, effects), tuple(_cell(ratios.get(arm)) for arm in ours))
            for peer, ratios in effects.ratios.items()
        ),
        corner="Peer",
    )


def _lines(effects: PeerEffects, ours: Sequence[str], level: str) -> Iterator[str]:
    rows = [
        ("Peer", *ours),
        *(
            (_name(peer, effects), *(_in_one_line(ratios.get(arm)) for arm in ours))
            for peer, ratios in effects.ratios.items()
        ),
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    yield f"{effects.workload}: {_caption(level)}{_left_out(effects)}"
    for row in rows:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(["", first, *others]).rstrip()


def _caption(level: str) -> str:
    return f"throughput of pgdyno's configurations against each peer's ({level} intervals)"


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
    return StyledCell((whole.rstrip("-") or PLAN).replace("-", " "), f"without {part}" if is_less else "")


def _cell(interval: Interval | None) -> StyledCell:
    if interval is None:
        return StyledCell(NOTHING)
    effect = numbers.change_within(interval.point, interval.low, interval.high)
    return StyledCell(effect, numbers.interval(interval))


def _in_one_line(interval: Interval | None) -> str:
    cell = _cell(interval)
    return f"{cell.text} ({cell.note})" if cell.note else cell.text
