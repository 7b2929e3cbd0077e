"""The time axis shared by charts of blocks: a column per round, with its blocks side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.measure.view.series import TrialValues
from pgdyno.report.charts.svg import box, text

_LABEL_ROOM_PX = 26.0
_FLOOR_LABEL_PX = 18.0


@dataclass(frozen=True)
class RoundColumn:
    """One round, ``start`` and ``end`` in pixels; ``positions`` are its blocks', in chronological order."""

    round: int
    start: float
    end: float
    positions: tuple[int, ...]


@dataclass(frozen=True)
class RoundColumns:
    """All rounds, from left to right."""

    columns: tuple[RoundColumn, ...]

    def place(self, trial: TrialValues) -> float:
        """Return a block's x coordinate: the middle of its part of the round's column."""
        column = next(c for c in self.columns if c.round == trial.round)
        step = (column.end - column.start) / len(column.positions)
        return column.start + (column.positions.index(trial.position) + 0.5) * step

    def background(self, top: float, bottom: float) -> list[Markup]:
        """Return a stripe behind every second round."""
        return [
            box(column.start, top, column.end - column.start, bottom - top, "stripe")
            for column in self.columns[1::2]
        ]

    def axis(self, bottom: float) -> list[Markup]:
        """Return the axis title, and as many round numbers as fit."""
        if not self.columns:
            return []
        width = self.columns[0].end - self.columns[0].start
        every = max(1, -(-int(_LABEL_ROOM_PX) // max(1, int(width))))
        labels = [
            text(
                str(column.round), (column.start + column.end) / 2, bottom + _FLOOR_LABEL_PX, "tick", "middle"
            )
            for column in self.columns[::every]
        ]
        middle = (self.columns[0].start + self.columns[-1].end) / 2
        return [*labels, text("round", middle, bottom + 2 * _FLOOR_LABEL_PX, "tick", "middle")]


def round_columns(trials: Sequence[TrialValues], start: float, end: float) -> RoundColumns:
    """Divide start … end evenly among the rounds with blocks.

    The column of an interrupted round with fewer blocks is equally wide.
    """
    rounds = sorted({trial.round for trial in trials})
    width = (end - start) / max(1, len(rounds))
    return RoundColumns(
        tuple(
            RoundColumn(
                number,
                start + order * width,
                start + (order + 1) * width,
                tuple(sorted({trial.position for trial in trials if trial.round == number})),
            )
            for order, number in enumerate(rounds)
        )
    )
