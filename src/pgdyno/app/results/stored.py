"""Experiments that were stored earlier: measured here, or imported."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pgdyno.app.local_machine import open_store
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.at_load import AT_LOAD
from pgdyno.model.experiments.experiment import Experiment


@dataclass(frozen=True)
class Listed:
    """One experiment in a list. ``imported`` is when it was; None: it was measured here."""

    id: str
    question: str
    imported: str | None


def load_stored(experiment_id: str | None) -> Experiment:
    """Return an experiment, the newest one that was measured here if no id is given.

    Raises: UsageError if there is none at all, StorageError for an unknown id.
    """
    with closing(open_store()) as store:
        if experiment_id is not None:
            return store.load(experiment_id)
        imported = store.origins()
        own = next((one for one in store.ids() if one not in imported and not one.endswith(AT_LOAD)), None)
        if own is not None:
            return store.load(own)
        if imported:
            raise UsageError(
                "no experiment was measured here yet",
                detail=f"{len(imported)} imported",
                hint="name one of them: see pgdyno report --list",
            )
        raise UsageError("there is no experiment yet", hint="pgdyno compare, run or accelerate makes one")


def list_stored() -> list[Listed]:
    """Return every experiment, the newest first."""
    with closing(open_store()) as store:
        origins = store.origins()
        return [
            Listed(id_, store.load(id_).question, origins[id_].imported if id_ in origins else None)
            for id_ in store.ids()
        ]
