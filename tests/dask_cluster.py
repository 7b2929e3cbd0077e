"""A Dask cluster on this machine: a scheduler, and for each name a worker in a process of its own."""

from __future__ import annotations

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
    with distributed.SpecCluster(
        scheduler={
            "cls": distributed.Scheduler,
            "options": {"dashboard": False, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"},
        },
        workers={name: {"cls": distributed.Nanny, "options": options} for name in names},
    ) as cluster:
        yield cluster
