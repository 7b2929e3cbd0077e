"""Trials for workers that measure nothing: their answers lie in a directory, and each is noted there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tests.golden.synthetic_fleet import fleet

from pgdyno.app.results.bundle import export_bundle
from pgdyno.model.fleets.fleet_order import TrialOrder

_MOST_S = 60.0


@dataclass(frozen=True)
class Made:
    """Answers by a trial's key without the fleet's own number: ``db1-1.zip``."""

    directory: Path

    def __call__(self, order: TrialOrder) -> bytes:
        """Note the attempt with the process that makes it, and answer once there is an answer."""
        place = "-".join(order.key.split("-")[-2:])
        with (self.directory / f"{place}.attempts").open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        path = self.directory / f"{place}.zip"
        ends_s = time.monotonic() + _MOST_S
        while not path.exists() and time.monotonic() < ends_s:
            time.sleep(0.05)
        return path.read_bytes()

    def answer(self, place: str, number: int) -> None:
        """Have an answer for a trial, whole at once."""
        hidden = self.directory / f".{place}.zip"
        export_bundle(fleet()[number], hidden)
        hidden.rename(self.directory / f"{place}.zip")

    def attempts(self, place: str) -> list[int]:
        """Return the processes that have made a trial."""
        path = self.directory / f"{place}.attempts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []
