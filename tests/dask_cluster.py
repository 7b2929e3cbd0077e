"""A Dask cluster on this machine: a scheduler, and for each name a worker in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

_TRIALS = "pgdyno.app.fleets.measure_trial"  # loaded before the worker is there, not while it has a trial
NO_DASK = "the package distributed is not installed"


@contextmanager
def dask_cluster(names: Sequence[str]) -> Iterator[Any]:
    """Provide a cluster as the guide has it; a worker that ends is started again by its nanny."""
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    options = {"nthreads": 1, "resources": {"measuring": 1}, "host": "127.0.0.1", "preload": [_TRIALS]}
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"dashboard": False, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"},
    }
    workers = {name: {"cls": distributed.Nanny, "options": options} for name in names}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONHASHSEED", "6640")  # nannies do so, and would leave it to other tests
        with distributed.SpecCluster(scheduler=scheduler, workers=workers) as cluster:
            yield cluster


def dask_scheduler(port: int) -> subprocess.Popen[bytes]:
    """Start a scheduler at a port, as ``dask scheduler`` does. It listens some seconds later."""
    return _started("scheduler", "--port", str(port), "--dashboard-address", "127.0.0.1:0")


def dask_worker(port: int, name: str) -> subprocess.Popen[bytes]:
    """Start a worker of the scheduler at a port, as the guide has it. It ends with its scheduler."""
    words = ("--name", name, "--nthreads", "1", "--resources", "measuring=1", "--preload", _TRIALS)
    return _started("worker", f"tcp://127.0.0.1:{port}", "--no-dashboard", *words)


def _started(*words: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1"]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
