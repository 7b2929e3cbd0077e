"""Import experiments from verified bundles into the store."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.bundle import portable_experiment, read_bundle_slices, verify_bundle
from pgdyno.store.bundle import Verification
from pgdyno.store.experiments import ExperimentStore, Origin, open_store
from pgdyno.store.files import open_plain


@dataclass(frozen=True)
class Imported:
    """The result of an import. ``is_new`` False: the same experiment was already stored."""

    experiment: str  # its id
    question: str
    is_new: bool
    was_measured_here: bool


def import_bundle(path: Path) -> Imported:
    """Store the experiment of a bundle; the same one a second time changes nothing.

    Raises: StorageError if anything is wrong with the bundle, or another experiment has its id.
    """
    return import_verified(path, verify_bundle(path))


def import_verified(path: Path, found: Verification) -> Imported:
    """Store the experiment of a bundle that was verified. Raises: as ``import_bundle``."""
    experiment = verified_experiment(found)
    with closing(open_store()) as store:
        if store.has(experiment.id):
            return _known(store, experiment)
        rows = read_bundle_slices(path, found, experiment)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        store.add_imported(experiment, rows, Origin(now, _sha256(path)))
    return Imported(experiment.id, experiment.question, is_new=True, was_measured_here=False)


def verified_experiment(found: Verification) -> Experiment:
    """Return the experiment of a bundle that was checked. Raises: StorageError with all that is wrong."""
    if found.problems or found.experiment is None:
        raise StorageError(
            f'the bundle "{found.path}" is not taken: {_counted(len(found.problems))} wrong with it',
            detail="\n".join(found.problems),
            hint=found.advice or "get it again from where it was exported",
        )
    return found.experiment


def _counted(problems: int) -> str:
    return "one thing is" if problems == 1 else f"{problems} things are"


def _known(store: ExperimentStore, experiment: Experiment) -> Imported:
    """Return the result for a stored experiment. Raises: StorageError if another one has its id."""
    stored = store.load(experiment.id)
    was_measured_here = experiment.id not in store.origins()
    here = portable_experiment(stored) if was_measured_here else stored
    if here != experiment:
        different = [
            one.name for one in fields(here) if getattr(here, one.name) != getattr(experiment, one.name)
        ]
        raise StorageError(
            f'another experiment is called "{experiment.id}" here',
            detail=f"it differs in {', '.join(different)}; what is here was "
            f"{'measured here' if was_measured_here else 'imported'}, and is kept",
            hint="compare both without importing: pgdyno bundle compare EXPERIMENT FILE",
        )
    return Imported(experiment.id, experiment.question, is_new=False, was_measured_here=was_measured_here)


def _sha256(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
