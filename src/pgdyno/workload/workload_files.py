"""The files of captured workloads, with all that can be checked without a server."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.store.workload_file import read_workload_file
from pgdyno.workload.capture.mistakes import mistakes_of

_MOST_MISTAKES = 8


def read_workload(path: Path) -> CapturedWorkload:
    """Return the workload in a file. Raises: UsageError listing its mistakes."""
    workload = read_workload_file(path)
    if mistakes := list(islice(mistakes_of(workload), _MOST_MISTAKES)):
        raise UsageError(f'"{path}" cannot be replayed', detail="; ".join(mistakes))
    return workload
