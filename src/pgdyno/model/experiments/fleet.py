"""A fleet: the same comparisons on several machines, and the prediction for others."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Interval, Verdict

MACHINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)
"""Used in file names, and as a resource of Dask workers."""


@dataclass(frozen=True)
class MachineOrder:
    """The job for one machine: the arguments of ``pgdyno``, and the time limit."""

    command: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True)
class FleetOrder:
    """A fleet, named after its file. Each machine measures the whole experiment once."""

    name: str
    machine: MachineOrder
    machines: tuple[str, ...]

    def bundle_name(self, machine: str) -> str:
        """Return the file name of a machine's bundle; it contains a hash of the command."""
        digest = hashlib.sha256(json.dumps(self.machine.command).encode()).hexdigest()
        return f"{machine}-{digest[:8]}.zip"


@dataclass(frozen=True)
class FleetExperiment:
    """One of the experiments. ``source`` is the bundle's file, or the experiment's id, as given."""

    source: str
    experiment: str  # its id
    created: str
    question: str


@dataclass(frozen=True)
class FleetMachine:
    """A machine with its experiments. ``facts`` describe its hardware and operating system."""

    name: str
    facts: Mapping[str, str]
    experiments: tuple[FleetExperiment, ...]


@dataclass(frozen=True)
class Occasion:
    """The effect in one of a machine's several experiments."""

    experiment: str  # its id
    created: str
    interval: Interval


@dataclass(frozen=True)
class MachineEffect:
    """The effect on one machine; its verdict is corrected by Holm for the number of machines.

    ``occasions`` are the experiments, if there are several.
    """

    machine: str
    verdict: Verdict
    occasions: tuple[Occasion, ...] = ()


@dataclass(frozen=True)
class MachineSpread:
    """The standard deviation of machines' log-ratios without measurement noise, and its interval."""

    low: float
    sd: float
    high: float
    level: float


@dataclass(frozen=True)
class FleetComparison:
    """One metric of one workload and variant on all machines with comparable measurements.

    ``verdict`` is on the mean of the machines, each counted as a round; it is corrected by Holm for the
    number of comparisons.
    ``prediction`` is the interval for another machine, in an experiment of the same length. For a single
    machine it and ``between`` are None. ``operation`` is the counted unit, if not transactions.
    """

    workload: str
    variant: str
    baseline: str
    metric: str
    machines: tuple[MachineEffect, ...]
    verdict: Verdict
    between: MachineSpread | None
    prediction: Interval | None
    operation: str | None = None


@dataclass(frozen=True)
class Fleet:
    """The results of the same comparisons on several machines.

    ``left_out`` are sentences on the comparisons that are not combined, with reasons.
    """

    machines: tuple[FleetMachine, ...]
    comparisons: tuple[FleetComparison, ...]
    margin: float
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]
