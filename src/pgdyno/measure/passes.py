"""Passes: a pass runs all steps of a benchmark, each as a whole, on one arm alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.experiment import Block, Design, Experiment
from pgdyno.model.experiments.workload import Workload


@dataclass(frozen=True)
class OneArm:
    """The arm of a pass, and the context of its round; ``round`` counts from 0."""

    arm: Arm
    loads: Loads
    design: Design
    round: int
    meters: Sequence[MeterModule]
    announce: Callable[[str], None] = lambda _: None  # reports progress


class Passes(Protocol):
    """Measures a benchmark. One object serves all passes of an experiment."""

    def checked(
        self, experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
    ) -> Experiment:
        """Check the servers before the first pass; return the experiment with the results.

        Raises: MeasurementError for a server whose answers are wrong.
        """
        ...

    def measured(self, on: OneArm, workloads: Sequence[Workload]) -> list[Block]:
        """Run a pass on an arm, and return a block for each of its workloads.

        Raises: GeneratorError, StorageError, ServerCrashedError; MeasurementError.
        """
        ...
