"""Writes the report of an experiment."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.privacy.redaction import without_secrets
from pgdyno.report.page.page import render_page
from pgdyno.store.documents import dump_experiment, load_experiment
from pgdyno.store.files import write_whole
from pgdyno.store.tunings import tuning_of


def write_report(experiment: Experiment, destination: Path | None = None) -> Path:
    """Write the report and return its path: next to the store of experiments by default.

    Raises: StorageError if it cannot be written.
    """
    path = destination or workspace().experiments() / f"{file_name(experiment.id)}.html"
    shown = load_experiment(without_secrets(dump_experiment(experiment)))
    with closing(open_store()) as store:
        is_imported = experiment.id in store.origins()
    tuning = None if is_imported else tuning_of(workspace().experiments(), experiment.id)
    write_whole(path, render_page(shown, is_imported=is_imported, tuning=tuning).encode())
    return path


def file_name(experiment_id: str) -> str:
    """Return a name for an experiment's files, without an ending."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in experiment_id).strip(".")
    return f"pgdyno-{plain}"
