"""A machine's part in a fleet: make the experiment on the machine that this runs on, as a bundle."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.measure.design.isolation import split_cpus
from pgdyno.model.experiments.fleet_order import MachineOrder
from pgdyno.remote.dask_scheduler import task_is_wanted
from pgdyno.remote.pgdyno_command import allowed_cpus, run_pgdyno
from pgdyno.results.bundle import export_bundle
from pgdyno.results.stored import load_stored

_BUSY_S = 2.0  # arbitrary: between two looks at a machine on which another one measures


def measure_on_worker(order: MachineOrder) -> bytes:
    """Measure in a task of Dask; it is interrupted when nobody waits for it any more.

    Raises: RefusedError on a worker that is root's, or that the network reaches; as ``measure_machine``.
    """
    return measure_machine(order, task_is_wanted())


def measure_machine(
    order: MachineOrder,
    is_wanted: Callable[[], bool] = lambda: True,
    run: Callable[..., str] = run_pgdyno,
) -> bytes:
    """Return the bundle of the experiment that the ordered command makes, without its raw series.

    While another pgdyno measures on this machine, it waits: for that of a worker that was killed, say.
    Raises: MeasurementError if the command fails; LockHeldError if the machine was not free within the limit;
    StorageError.
    """
    servers = split_cpus(allowed_cpus(), is_wanted=True)  # as pgdyno gives them: the rest issues the load
    words = [*order.command, "--json"]
    ends_s = time.monotonic() + order.limit_s
    while True:
        try:
            printed = run(words, order.limit_s, is_wanted, worker_cpus=servers.client)
        except LockHeldError:
            if time.monotonic() >= ends_s or not is_wanted():
                raise
            time.sleep(_BUSY_S)
        else:
            return _bundle(_experiment(printed))


def _experiment(printed: str) -> str:
    try:
        return str(json.loads(printed)["experiment"])
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            "the command printed no experiment",
            detail=printed[:200],
            hint="order a command that measures: pgdyno compare … or pgdyno run …",
        ) from error


def _bundle(experiment: str) -> bytes:
    """Return the bundle as bytes. The raw series, some megabytes, stay in the store of this machine."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-fleet-") as directory:
        return export_bundle(load_stored(experiment), Path(directory) / "answer.zip").read_bytes()
