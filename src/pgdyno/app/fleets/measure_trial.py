"""A worker's part: make a trial on the machine that it runs on, and answer with a bundle.

A trial that was made is not made again: a note says which experiment it was, so that a controller that lost
the answer, or was started again, gets the same one.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from pathlib import Path

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.results.bundle import export_bundle
from pgdyno.app.results.stored import load_stored
from pgdyno.experiments.design.isolation import split_cpus
from pgdyno.journal.ledger.lock import exclusive_lock
from pgdyno.model.errors import LockHeldError, MeasurementError
from pgdyno.model.fleets.fleet_order import TrialOrder
from pgdyno.remote.pgdyno_command import allowed_cpus, run_pgdyno
from pgdyno.store.files import write_whole

_BUSY_S = 2.0  # arbitrary: between two looks at a machine on which another one measures


def measure_trial(order: TrialOrder) -> bytes:
    """Return the bundle of a trial's experiment, without its raw series; make the trial if it was not yet.

    While another one measures on this machine, it waits: for a trial of a worker that was killed, say.
    Raises: MeasurementError if it fails; LockHeldError if the machine was not free within the trial's limit;
    StorageError.
    """
    ends_s = time.monotonic() + order.limit_s
    while True:
        try:
            with exclusive_lock(workspace().fleets() / "trial.lock"):
                return _bundle(_made(order))
        except LockHeldError:
            if time.monotonic() >= ends_s:
                raise
            time.sleep(_BUSY_S)


def _made(order: TrialOrder) -> str:
    """Return a trial's experiment, which a note names if it was made before."""
    note = workspace().fleets() / f"{order.key}.experiment"
    experiment = _noted(note)
    if experiment is None:
        experiment = _measured(order)
        write_whole(note, f"{experiment}\n".encode())
    return experiment


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
