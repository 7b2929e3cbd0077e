"""Take a worker's answer: bounded, verified like any bundle, its experiment stored once.

A worker is another machine, and what it sends may be damaged, of another trial, or made up.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from pgdyno.app.local_machine import open_store
from pgdyno.app.results.bundle import verify_bundle
from pgdyno.app.results.bundle_import import import_verified, verified_experiment
from pgdyno.experiments.fleets.found import found_in
from pgdyno.model import numbers
from pgdyno.model.errors import MeasurementError, StorageError
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.trial_store import TrialStore
from pgdyno.store.bundle import Verification
from pgdyno.store.fleets.stored_finding import finding_text

_MOST_BYTES = 64 << 20  # of a bundle without raw series: measured are 40 kB to 1 MB


def take_answer(answer: object, store: TrialStore) -> FleetFinding:
    """Return an answer's finding; its experiment is in the store of experiments then.

    Raises: MeasurementError if it is no answer; StorageError if our own store cannot be written.
    """
    if not isinstance(answer, bytes):
        raise MeasurementError(f"the worker answered with no bundle, but with a {type(answer).__name__}")
    if len(answer) > _MOST_BYTES:
        raise MeasurementError(
            f"the worker's answer is too large: {numbers.size(len(answer))}",
            detail=f"at most {numbers.size(_MOST_BYTES)} are taken",
        )
    with tempfile.TemporaryDirectory(prefix="pgdyno-answer-") as directory:
        path = Path(directory) / "trial.zip"
        path.write_bytes(answer)
        return _taken(path, store)


def _taken(path: Path, store: TrialStore) -> FleetFinding:
    found, finding = _checked(path)
    if (other := store.answered_with(finding)) is not None:
        raise MeasurementError(
            f'the worker answered with an experiment that is not new: "{finding.experiment}"',
            detail=f"{other} has been answered with the same one",
        )
    _store(path, found, finding.experiment)
    return finding


def _checked(path: Path) -> tuple[Verification, FleetFinding]:
    """Return a bundle's experiment. Raises: MeasurementError with all that is wrong with it."""
    try:
        found = verify_bundle(path)
        finding = found_in(verified_experiment(found))
        finding_text(finding)
    except StorageError as error:
        raise MeasurementError(
            "the worker's answer is no sound bundle", detail=error.detail or error.message
        ) from error
    if not finding.comparisons:
        raise MeasurementError(f'the worker\'s experiment "{finding.experiment}" compares nothing')
    return found, finding


def _store(path: Path, found: Verification, experiment: str) -> None:
    with closing(open_store()) as store:
        is_known = store.has(experiment)
    try:
        import_verified(path, found)
    except StorageError as error:
        if not is_known:  # then it is our store
            raise
        raise MeasurementError(error.message, detail=error.detail) from error
