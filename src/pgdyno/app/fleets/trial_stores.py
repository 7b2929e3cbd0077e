"""Where a fleet's trials are stored: in a file here, or in the PostgreSQL that its file names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pgdyno.app.local_machine import workspace
from pgdyno.model.errors import FleetFileError, UsageError
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.trial_store import TrialStore
from pgdyno.server.connection.connection import connect_to_change, has_password, without_password
from pgdyno.store.fleets.fleet_trials import FleetStore
from pgdyno.store.fleets.shared_trials import SharedFleetStore
from pgdyno.store.fleets.store_session import StoreSession


def open_trials(order: FleetOrder, say: Callable[[str], None]) -> TrialStore:
    """Open a fleet's store for its controller; ``say`` is told while a database is waited for.

    Raises: StorageError if it cannot be opened; FleetFileError for a name that is none.
    """
    if order.store is None:
        return FleetStore(fleet_path(order))
    return _shared(order, order.store, say)


def begun_trials(order: FleetOrder) -> TrialStore | None:
    """Open a fleet's store to look at it; None if no controller has begun the fleet yet.

    Raises: StorageError if it cannot be opened; FleetFileError for a name that is none.
    """
    if order.store is None:
        path = fleet_path(order)
        return FleetStore(path) if path.is_file() else None
    store = _shared(order, order.store, None)
    if store.is_begun():
        return store
    store.close()
    return None


def fleet_path(order: FleetOrder) -> Path:
    """Return the file with a fleet's trials, for one that names no database."""
    return workspace().fleets() / f"{order.name}.sqlite"


def _shared(order: FleetOrder, dsn: str, say: Callable[[str], None] | None) -> SharedFleetStore:
    try:
        is_secret, shown = has_password(dsn), without_password(dsn)
    except UsageError as error:
        raise FleetFileError(
            f'the store of the fleet "{order.name}" is no connection string',
            detail=error.detail,
            hint='write store = "postgresql://user@host/database", or store = "service=NAME"',
        ) from error
    if is_secret:
        raise FleetFileError(
            f'the store of the fleet "{order.name}" is named with a password',
            detail="whoever reads the file reads it, too",
            hint="leave it to ~/.pgpass, or the file that PGPASSFILE names; or name a service: service=NAME",
        )
    session = StoreSession(partial(connect_to_change, dsn), f'the fleet\'s store "{shown}"', say)
    return SharedFleetStore(session, order.name)
