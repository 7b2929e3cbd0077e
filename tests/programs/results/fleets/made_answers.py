"""Answers of workers that measure nothing: they lie in a directory, where each attempt is noted."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.golden.synthetic_fleet import fleet

from pgdyno.model.experiments.fleet import MachineOrder
from pgdyno.remote.dask_scheduler import task_is_wanted
from pgdyno.results.bundle import export_bundle

_MOST_S = 60.0


@dataclass(frozen=True)
class Made:
    """An answer by the resource of the worker: ``db1.zip``; a machine's worker may be killed by it once."""

    directory: Path
    killed: str = ""

    def __call__(self, order: MachineOrder) -> bytes:
        """Note the attempt with the process that makes it, and answer once there is an answer."""
        from distributed import get_worker

        (machine,) = get_worker().state.total_resources
        with (self.directory / f"{machine}.attempts").open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        if machine == self.killed and len(self.attempts(machine)) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        path, is_wanted = self.directory / f"{machine}.zip", task_is_wanted()
        ends_s = time.monotonic() + _MOST_S
        while not path.exists() and time.monotonic() < ends_s:
            if not is_wanted():
                (self.directory / f"{machine}.dropped").touch()
                break
            time.sleep(0.05)
        return path.read_bytes()

    def answer(self, machine: str, number: int) -> None:
        """Have an answer for a machine, whole at once."""
        hidden = self.directory / f".{machine}.zip"
        export_bundle(fleet()[number], hidden)
        hidden.chmod(0o644)
        hidden.rename(self.directory / f"{machine}.zip")

    def attempts(self, machine: str) -> list[int]:
        """Return the processes that have worked on a machine's answer."""
        path = self.directory / f"{machine}.attempts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []
