"""A fleet as it is: its trials, its time and its price; before it runs, meanwhile, and afterwards."""

from __future__ import annotations

from contextlib import closing

from pgdyno.app.fleets.trial_stores import begun_trials
from pgdyno.experiments.fleets.progress import fleet_progress
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_progress import FleetProgress
from pgdyno.model.fleets.trial_store import TrialStore


def progress_of(order: FleetOrder, budget_s: float | None) -> FleetProgress:
    """Return how far a fleet is. ``budget_s`` is that of one experiment, if it has one.

    Raises: StorageError if the fleet's store cannot be read.
    """
    store = begun_trials(order)
    if store is None:
        return fleet_progress(order, (), (), {}, budget_s)
    with closing(store):
        return progress_in(store, order, budget_s)


def progress_in(store: TrialStore, order: FleetOrder, budget_s: float | None) -> FleetProgress:
    """Return how far a fleet is whose store is open. Raises: StorageError if it cannot be read."""
    return fleet_progress(order, store.trials(), store.seconds(), store.events(), budget_s)
