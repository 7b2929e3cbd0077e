"""Compares two machines by an experiment that ran on both, from bundles or from the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.measure.view.wording import SIGNS
from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.report.elements.html import render
from pgdyno.results.machines.machine_comparison import compare_machines
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
from pgdyno.results.report import drawing
from pgdyno.results.stored import given_experiment
from pgdyno.store.files import write_whole

_WHAT = "these experiments"
_PAGE = "machines.html.j2"


def compare_experiments(a: str, b: str, prices: Mapping[str, float]) -> MachineComparison:
    """Return the comparison of two machines; each experiment is a bundle's file or a stored id.

    Both are compared in the form of bundles, so data that bundles omit are no difference.
    Raises: UsageError if they did different work; StorageError for an invalid bundle or an unknown id.
    """
    with drawing(_WHAT):
        return compare_machines(given_experiment(a), given_experiment(b), prices)


def write_machines(found: MachineComparison, destination: Path) -> Path:
    """Write the comparison as one HTML file. Raises: StorageError if it cannot be rendered or written."""
    with drawing(_WHAT):
        page = render_machines(found)
    write_whole(destination, page.encode())
    return destination


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
