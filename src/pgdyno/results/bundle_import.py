"""Imports experiments from verified bundles into the store."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.base.text import counted
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.bundle import portable_experiment, read_bundle_slices, verify_bundle
from pgdyno.store.bundle import Verification
from pgdyno.store.experiments import ExperimentStore, Origin, open_store
from pgdyno.store.files import open_plain


@dataclass(frozen=True)
class Imported:
    """The result of an import. ``is_new`` is False if the same experiment was already stored."""

    experiment: str  # its id
    question: str
    is_new: bool
    was_measured_here: bool


def import_bundle(path: Path) -> Imported:
    """Store the experiment of a bundle. A second import of the same experiment changes nothing.

    Raises: StorageError if the bundle is invalid, or if a different experiment has its id.
    """
    return import_verified(path, verify_bundle(path))


def import_verified(path: Path, found: Verification) -> Imported:
    """Store the experiment of a verified bundle. Raises: as ``import_bundle``."""
    experiment = verified_experiment(found)
    with closing(open_store()) as store:
        if store.has(experiment.id):
            return _known(store, experiment)
        rows = read_bundle_slices(path, found, experiment)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        store.add_imported(experiment, rows, Origin(now, _sha256(path)))
    return Imported(experiment.id, experiment.question, is_new=True, was_measured_here=False)


def verified_experiment(found: Verification) -> Experiment:
    """Return the experiment of a checked bundle. Raises: StorageError listing all its problems."""
    if found.problems or found.experiment is None:
        problems = counted(len(found.problems), "problem")
        raise StorageError(
            f'the bundle "{found.path}" is refused: {problems}',
            detail="\n".join(found.problems),
            hint=found.advice or "copy it again from where it was exported",
        )
    return found.experiment


def _known(store: ExperimentStore, experiment: Experiment) -> Imported:
    """Return the result for an id that is stored. Raises: StorageError if it is a different experiment."""
    stored = store.load(experiment.id)
    was_measured_here = experiment.id not in store.origins()
    here = portable_experiment(stored) if was_measured_here else stored
    if here != experiment:
        different = [
            one.name for one in fields(here) if getattr(here, one.name) != getattr(experiment, one.name)
        ]
        raise StorageError(
            f'a different experiment with the id "{experiment.id}" is already stored',
            detail=f"they differ in {', '.join(different)}; the stored one was "
            f"{'measured here' if was_measured_here else 'imported'} and is kept",
            hint="compare both without importing: pgdyno bundle compare EXPERIMENT FILE",
        )
    return Imported(experiment.id, experiment.question, is_new=False, was_measured_here=was_measured_here)


def _sha256(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
