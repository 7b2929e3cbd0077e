"""A comparison of two machines as one HTML file, with its sources. Pure."""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.measure.view.words import SIGNS
from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.report.elements.html import render
from pgdyno.results.machines.machine_tables import (
    SCOPE,
    all_differences,
    answer,
    derived_tables,
    machine_table,
    margin,
    metric_tables,
    notes,
    side_line,
    withheld,
)

_PAGE = "machines.html.j2"


def render_machines(found: MachineComparison) -> str:
    """Return the whole page."""
    limit = margin(found)
    return render(
        _PAGE,
        signs=SIGNS,
        margin=None if limit is None else numbers.share(limit),
        found=found,
        sides=[side_line(side) for side in found.sides],
        answer=answer(found),
        ratios=[*metric_tables(found)],
        withheld=[*withheld(found)],
        scope=SCOPE,
        derived=[*derived_tables((*found.per_price, *found.per_frequency), found)],
        machines=machine_table(found.machine),
        differences=all_differences(found.differences) if found.differences else None,
        notes=[*notes(found)],
    )
