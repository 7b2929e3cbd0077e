"""Experiments that were stored earlier: measured here, or imported."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import AT_LOAD
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.results.bundle import portable_experiment, verify_bundle
from pgdyno.results.bundle_import import verified_experiment
from pgdyno.results.report import file_name
from pgdyno.store.experiments import ExperimentStore, open_store

_BUNDLE = ".zip"


@dataclass(frozen=True)
class Listed:
    """One experiment in a list. ``imported`` is when it was; None: it was measured here.

    ``problem`` is why it cannot be read; it then has no question.
    """

    id: str
    question: str
    imported: str | None
    problem: str | None = None


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
        return [_listed(store, id_, origins[id_].imported if id_ in origins else None) for id_ in store.ids()]


def _listed(store: ExperimentStore, id_: str, imported: str | None) -> Listed:
    try:
        return Listed(id_, store.load_head(id_).question, imported)
    except StorageError as error:
        return Listed(id_, "", imported, error.message)


def delete_stored(ids: Sequence[str]) -> None:
    """Delete experiments with their series, and their reports beside the store.

    Raises: StorageError for an unknown id, LockHeldError while a pgdyno measures here: it may be one of them.
    None is deleted then.
    """
    place = workspace()
    with place.measuring(), closing(open_store()) as store:
        for id_ in ids:
            store.require(id_)
        for id_ in ids:
            store.delete(id_)
            (place.experiments() / f"{file_name(id_)}.html").unlink(missing_ok=True)


def given_experiment(reference: str) -> Experiment:
    """Return an experiment as a bundle has it.

    Then nothing that bundles leave out is a difference to another one.
    Raises: StorageError for a bundle with which anything is wrong, and for an unknown id.
    """
    path = Path(reference)
    if path.suffix == _BUNDLE or path.is_file():
        return verified_experiment(verify_bundle(path))
    return portable_experiment(load_stored(reference))
