"""Experiments that were stored earlier."""

from __future__ import annotations

from contextlib import closing

from pgdyno.app import wiring
from pgdyno.model.errors import UsageError
from pgdyno.model.experiment import Experiment


def load_stored(experiment_id: str | None) -> Experiment:
    """Return an experiment, the newest one if no id is given.

    Raises: UsageError if there is none at all, StorageError for an unknown id.
    """
    with closing(wiring.open_store()) as store:
        ids = store.ids()
        if experiment_id is None and not ids:
            raise UsageError("there is no experiment yet", hint="pgdyno compare, run or accelerate makes one")
        return store.load(experiment_id or ids[0])


def list_stored() -> list[tuple[str, str]]:
    """Return id and question of every experiment, the newest first."""
    with closing(wiring.open_store()) as store:
        return [(id_, store.load(id_).question) for id_ in store.ids()]
