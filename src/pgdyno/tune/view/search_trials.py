"""The search behind a proof: its curve, its trials, and the shortening of its winner. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.host.kernel_file import display_name
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Trial, TrialState, Tuning
from pgdyno.report.charts.search_curve import CurvePoint, search_curve, state_mark
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import NOTHING, Column, Figure, Table, columns, figure

_STATES = {
    TrialState.WON: "became the best",
    TrialState.LOST: "slower",
    TrialState.CLOSE: "no clear difference",
    TrialState.FAILED: "failed",
    TrialState.OVER_LIMIT: "over a limit",
    TrialState.REFUSED: "refused",
    TrialState.RUNNING: "interrupted",
}


@dataclass(frozen=True)
class SearchView:
    """The part of a page about a search. ``legend`` are the marks in the curve, with their labels."""

    id: str
    trials: int
    table: Table
    curve: Figure
    legend: tuple[tuple[Markup, str], ...]
    removals: Table | None


def search_view(tuning: Tuning) -> SearchView | None:
    """Return the view of a search; None if it has no trial, or had several aims."""
    if not tuning.trials or tuning.aims:
        return None
    points = list(_points(tuning))
    caption = Caption(
        "search",
        "Gain of every trial of the search over the default",
        "; ".join(one.title for one in points),
    )

    def draw(width: float) -> Markup:
        return search_curve(caption, points, width=width)

    table = _trials(tuning)
    present = {one.state for one in tuning.trials}
    return SearchView(
        tuning.id,
        len(tuning.trials),
        table,
        figure(draw, table, title="Trials of the search"),
        tuple((state_mark(state, 13, 7), words) for state, words in _STATES.items() if state in present),
        _removals(tuning) if tuning.removals else None,
    )


def _points(tuning: Tuning) -> Iterator[CurvePoint]:
    best = 1.0
    for trial in tuning.trials:
        ratio = None if trial.gain is None else math.exp(trial.gain)
        if trial.state is TrialState.WON and ratio is not None:
            best = ratio
        gain = "" if ratio is None else f"{numbers.change(ratio)}, "
        title = f"trial {trial.number}: {gain}{_outcome(trial)}"
        yield CurvePoint(trial.number, ratio, best, trial.state, title)


def _outcome(trial: Trial) -> str:
    return (
        f"{_STATES[trial.state]}: {trial.reason}"
        if trial.has_failed
        else trial.reason or _STATES[trial.state]
    )


def _trials(tuning: Tuning) -> Table:
    by_number = {one.number: one.point for one in tuning.trials}
    return Table(
        "Each figure is from a short measurement together with the default and the best so far",
        (
            Column("Trial", is_number=True),
            Column("Over the default", is_number=True),
            Column("Rounds", is_number=True),
            *columns("Outcome", "Changes against the best so far"),
        ),
        tuple(
            (
                str(one.number),
                NOTHING if one.gain is None else numbers.change(math.exp(one.gain)),
                str(len(one.rounds)),
                _outcome(one),
                _changes_from(one.point, {} if one.incumbent is None else by_number[one.incumbent]),
            )
            for one in tuning.trials
        ),
    )


def _changes_from(point: Point, incumbent: Point) -> str:
    changed = [f"{display_name(key)}={value}" for key, value in point.items() if incumbent.get(key) != value]
    undone = [f"{display_name(key)} as found" for key in incumbent if key not in point]
    return ", ".join([*changed, *undone])


def _removals(tuning: Tuning) -> Table:
    return Table(
        "Shortening of the best configuration: throughput without these changes, against the best",
        (
            *columns("Without", "Outcome", numbers_from=2),
            *columns("Change", "Bounds", "Rounds", numbers_from=0),
        ),
        tuple(
            (
                ", ".join(map(display_name, one.keys)),
                "left out" if one.is_kept else "kept",
                NOTHING if one.ratio is None else numbers.change(one.ratio[0]),
                NOTHING if one.ratio is None else numbers.change_range(*one.ratio[1:]),
                str(one.rounds),
            )
            for one in tuning.removals
        ),
    )
