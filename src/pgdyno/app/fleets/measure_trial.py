"""A worker's part: make a trial on the machine that it runs on, and answer with a bundle.

A trial that was made is not made again: a note says which experiment it was, so that a controller that lost
the answer, or was started again, gets the same one.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.results.bundle import export_bundle
from pgdyno.app.results.stored import load_stored
from pgdyno.experiments.design.isolation import split_cpus
from pgdyno.journal.ledger.lock import exclusive_lock
from pgdyno.model.errors import MeasurementError
from pgdyno.model.fleets.fleet_order import TrialOrder
from pgdyno.remote.pgdyno_command import allowed_cpus, run_pgdyno
from pgdyno.store.files import write_whole


def measure_trial(order: TrialOrder) -> bytes:
    """Return the bundle of a trial's experiment, without its raw series; make the trial if it was not yet.

    Raises: MeasurementError if it fails; LockHeldError while an earlier worker still makes it; StorageError.
    """
    place = workspace().fleets()
    with exclusive_lock(place / f"{order.key}.lock"):
        note = place / f"{order.key}.experiment"
        experiment = _noted(note)
        if experiment is None:
            experiment = _measured(order)
            write_whole(note, f"{experiment}\n".encode())
        return _bundle(experiment)


def _noted(note: Path) -> str | None:
    """Return the experiment that a note names, if it is still stored here."""
    if not note.exists():
        return None
    experiment = note.read_text().strip()
    with closing(open_store()) as store:
        return experiment if experiment in store.ids() else None


def _measured(order: TrialOrder) -> str:
    servers = split_cpus(allowed_cpus(), is_wanted=True)  # as pgdyno gives them: the rest issues the load
    printed = run_pgdyno([*order.command, "--json"], limit_s=order.limit_s, worker_cpus=servers.client)
    try:
        return str(json.loads(printed)["experiment"])
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            "the trial printed no experiment",
            detail=printed[:200],
            hint="order a command that measures: pgdyno compare … or pgdyno run …",
        ) from error


def _bundle(experiment: str) -> bytes:
    """Return the bundle as bytes. The raw series, some megabytes, stay in the store of this machine."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-trial-") as directory:
        return export_bundle(load_stored(experiment), Path(directory) / "trial.zip").read_bytes()
