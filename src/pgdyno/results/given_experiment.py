"""An experiment as it is named on the command line: a bundle's file, or the id of a stored one."""

from __future__ import annotations

from pathlib import Path

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.bundle import portable_experiment, verify_bundle
from pgdyno.results.bundle_import import verified_experiment
from pgdyno.results.stored import load_stored

_BUNDLE = ".zip"


def given_experiment(reference: str) -> Experiment:
    """Return an experiment as a bundle has it.

    Then nothing that bundles leave out is a difference to another one.
    Raises: StorageError for a bundle with which anything is wrong, and for an unknown id.
    """
    path = Path(reference)
    if path.suffix == _BUNDLE or path.is_file():
        return verified_experiment(verify_bundle(path))
    return portable_experiment(load_stored(reference))
