"""Stored experiments, measured here or imported."""

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
    """One experiment in a list. ``imported`` is the time of its import; None: measured here.

    ``problem`` is the reason why it cannot be read; ``question`` is then empty.
    """

    id: str
    question: str
    imported: str | None
    problem: str | None = None


def load_stored(experiment_id: str | None) -> Experiment:
    """Return an experiment; without an id, the newest one that was measured here.

    Raises: UsageError if none was measured here, StorageError for an unknown id.
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
        raise UsageError("no experiment is stored yet", hint="pgdyno compare, run or accelerate makes one")


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
    """Delete experiments with their series, and their reports next to the store.

    Raises: StorageError for an unknown id; LockHeldError while a pgdyno measures here, possibly one of them.
    Then none is deleted.
    """
    place = workspace()
    with place.measuring(), closing(open_store()) as store:
        for id_ in ids:
            store.require(id_)
        for id_ in ids:
            store.delete(id_)
            (place.experiments() / f"{file_name(id_)}.html").unlink(missing_ok=True)


def given_experiment(reference: str) -> Experiment:
    """Return an experiment in the form of a bundle: data that bundles omit then cause no differences.

    Raises: StorageError for an invalid bundle or an unknown id.
    """
    path = Path(reference)
    if path.suffix == _BUNDLE or path.is_file():
        return verified_experiment(verify_bundle(path))
    return portable_experiment(load_stored(reference))
