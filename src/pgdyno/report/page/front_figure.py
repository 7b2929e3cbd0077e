"""The front of a search with several aims on the page of its proof. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.experiments.verdicts.front_effects import MemberEffects, ProvenFront, proven_front
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.report.charts.front_scatter import FrontPoint, front_scatter
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import NOTHING, Column, Figure, Table, columns, figure
from pgdyno.report.plain.front_text import choice, effect_text, left_out_lines, own, shared

_DRAWN_AIMS = 2  # a plane has no more


@dataclass(frozen=True)
class FrontView:
    """All that a page shows of a front. ``chart`` is there for two aims."""

    aims: str
    chart: Figure | None
    effects: Table
    settings: Table
    left_out: tuple[str, ...]
    choice: str


def front_view(tuning: Tuning, experiment: Experiment) -> FrontView | None:
    """Return the front; None if there is none, or too few rounds count."""
    front = proven_front(tuning, experiment)
    if front is None:
        return None
    effects = _effects(front)
    return FrontView(
        " and ".join(aim.label for aim in front.aims),
        _chart(front, experiment, effects) if len(front.aims) == _DRAWN_AIMS else None,
        effects,
        _settings(tuning),
        tuple(left_out_lines(front)),
        choice(front),
    )


def _effects(front: ProvenFront) -> Table:
    return Table(
        "Each configuration against the default",
        (
            Column("Configuration"),
            *(Column(_headline(aim), is_number=True) for aim in front.aims),
            Column("On the front"),
        ),
        tuple(
            (
                one.name,
                *(effect_text(one.effects[aim]) for aim in front.aims),
                "yes" if one.is_on_front else "left out",
            )
            for one in front.members
        ),
    )


def _settings(tuning: Tuning) -> Table:
    """Return the changes that all members have in a row, then each one's own."""
    of_all = shared(tuning.members)
    rows = [(one.name, own(one, of_all)) for one in tuning.members]
    if len(rows) == 1:
        return Table("Its settings", columns("Configuration", "Settings"), (_row(rows[0][0], of_all),))
    return Table(
        "What the members set: the first line is of all of them",
        columns("Configuration", "Settings"),
        (_row("all", of_all), *(_row(name, point) for name, point in rows)),
    )


def _row(name: str, point: Mapping[str, str]) -> tuple[str, str]:
    return name, ", ".join(f"{display_name(key)}={value}" for key, value in point.items()) or NOTHING


def _chart(front: ProvenFront, experiment: Experiment, table: Table) -> Figure:
    across, up = front.aims
    arms = {one.name: place for place, one in enumerate(experiment.variants)}
    points = [
        FrontPoint(
            one.name,
            arms[one.name],
            one.effects[across],
            one.effects[up],
            one.is_on_front,
            f"{one.name}: {_said(one, front)}",
        )
        for one in front.members
    ]
    caption = Caption(
        "front",
        f"Configurations by {across.label} and {up.label}, against the default",
        "; ".join(one.title for one in points),
    )

    def draw(width: float) -> Markup:
        return front_scatter(caption, (_headline(across), _headline(up)), points, width=width)

    return figure(draw, table, title="The front")


def _said(one: MemberEffects, front: ProvenFront) -> str:
    return ", ".join(f"{aim.label} {effect_text(one.effects[aim])}" for aim in front.aims)


def _headline(aim: Aim) -> str:
    return f"{aim.label} ({'more' if aim.gain(1.0) > 0 else 'less'} is better)"
