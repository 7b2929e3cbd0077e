"""Run a build as stages that are done once: an interrupted build resumes where it stopped.

A stage is done when its name stands in the record, which is written after it. One that was interrupted is
run again from its own beginning, so that a stage must clear away what an earlier try of it has left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Watch = Callable[[float], None]
"""Is told now and then which share of a stage is done."""


@dataclass(frozen=True)
class Stage:
    """One stage; ``expected_s`` is how long it takes on a machine like the one where that was measured."""

    name: str
    expected_s: float
    run: Callable[[Watch], None]


@dataclass(frozen=True)
class Stages:
    """Stages in order, and the file that records which of them are done."""

    stages: Sequence[Stage]
    record: Path

    @property
    def expected_s(self) -> float:
        """How long all of them take."""
        return sum(stage.expected_s for stage in self.stages)

    def seconds(self) -> dict[str, float]:
        """Return the stages that are done, and how long each took."""
        try:
            lines = self.record.read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {name: float(seconds) for name, _, seconds in (line.partition("\t") for line in lines)}

    def share_done(self) -> float:
        """Return the share of all the work that is done."""
        done = self.seconds()
        return sum(stage.expected_s for stage in self.stages if stage.name in done) / self.expected_s

    def run(self, begin: Callable[[Stage], None], watch: Watch) -> None:
        """Run the remaining stages; ``begin`` is called for each, ``watch`` with the share of all work."""
        done = self.seconds()
        passed_s = 0.0
        for stage in self.stages:
            if stage.name not in done:
                begin(stage)
                began_s = time.monotonic()
                stage.run(share_of_all(watch, passed_s, stage.expected_s, self.expected_s))
                self._note(stage.name, time.monotonic() - began_s)
            passed_s += stage.expected_s
            watch(passed_s / self.expected_s)

    def _note(self, name: str, seconds: float) -> None:
        with self.record.open("a") as file:
            file.write(f"{name}\t{seconds:.1f}\n")
            file.flush()
            os.fsync(file.fileno())


def share_of_all(watch: Watch, passed_s: float, expected_s: float, total_s: float) -> Watch:
    """Return a function that converts one part's share into ``watch``'s share of all work."""
    return lambda share: watch((passed_s + share * expected_s) / total_s)
