"""A fleet as it is: its trials, its time and its price; before it runs, meanwhile, and afterwards."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pgdyno.app.local_machine import workspace
from pgdyno.experiments.fleets.progress import fleet_progress
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_progress import FleetProgress
from pgdyno.store.fleets.fleet_trials import FleetStore


def progress_of(order: FleetOrder, budget_s: float | None) -> FleetProgress:
    """Return how far a fleet is. ``budget_s`` is that of one experiment, if it has one.

    Raises: StorageError if the fleet's store cannot be read.
    """
    path = fleet_path(order)
    if not path.is_file():
        return fleet_progress(order, (), (), {}, budget_s)
    with closing(FleetStore(path)) as store:
        return fleet_progress(order, store.trials(), store.seconds(), store.events(), budget_s)


def fleet_path(order: FleetOrder) -> Path:
    """Return where a fleet's trials are stored, or will be."""
    return workspace().fleets() / f"{order.name}.sqlite"
