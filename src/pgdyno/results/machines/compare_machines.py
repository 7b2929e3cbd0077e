"""Compare two machines by experiments that ran on both, from bundles or from the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.results.given_experiment import given_experiment
from pgdyno.results.machines.machine_comparison import compare_machines
from pgdyno.results.machines.machine_page import render_machines
from pgdyno.results.report import drawing
from pgdyno.store.files import write_whole

_WHAT = "these experiments"


def compare_experiments(a: str, b: str, prices: Mapping[str, float]) -> MachineComparison:
    """Return the comparison of two machines; each experiment is a bundle's file or a stored id.

    Both are compared as bundles have them, so that what is left out of one is no difference to the other.
    Raises: UsageError if they are not the same experiment; StorageError for a bundle with which anything is
    wrong, and for an unknown id.
    """
    with drawing(_WHAT):
        return compare_machines(given_experiment(a), given_experiment(b), prices)


def write_machines(found: MachineComparison, destination: Path) -> Path:
    """Write the comparison as one HTML file. Raises: StorageError if it cannot be drawn or written."""
    with drawing(_WHAT):
        page = render_machines(found)
    write_whole(destination, page.encode())
    return destination
