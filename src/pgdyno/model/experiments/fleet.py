"""A fleet: the same comparisons on several machines, and their bearing on further ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Interval, Verdict

MACHINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)
"""It is part of names of files, and a resource of workers."""


@dataclass(frozen=True)
class MachineOrder:
    """The order for one machine: the words after ``pgdyno``, and the longest time that they may take."""

    command: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True)
class FleetOrder:
    """A fleet, named like its file. Each machine measures the whole experiment once."""

    name: str
    machine: MachineOrder
    machines: tuple[str, ...]

    def bundle_name(self, machine: str) -> str:
        """Return the name of the file with a machine's answer: another command has other files."""
        digest = hashlib.sha256(json.dumps(self.machine.command).encode()).hexdigest()
        return f"{machine}-{digest[:8]}.zip"


@dataclass(frozen=True)
class FleetExperiment:
    """One of the experiments. ``source`` is the bundle's file, or the id by which it was named."""

    source: str
    experiment: str  # its id
    created: str
    question: str


@dataclass(frozen=True)
class FleetMachine:
    """A machine with its experiments. ``facts`` are those of its hardware and system, in words."""

    name: str
    facts: Mapping[str, str]
    experiments: tuple[FleetExperiment, ...]


@dataclass(frozen=True)
class Occasion:
    """The effect that one of a machine's several experiments found."""

    experiment: str  # its id
    created: str
    interval: Interval


@dataclass(frozen=True)
class MachineEffect:
    """The effect on one machine; its verdict is corrected by Holm for the number of machines.

    ``occasions`` has the experiments where there are several.
    """

    machine: str
    verdict: Verdict
    occasions: tuple[Occasion, ...] = ()


@dataclass(frozen=True)
class MachineSpread:
    """The standard deviation of machines' log-ratios, without the noise of measuring, and its interval."""

    low: float
    sd: float
    high: float
    level: float


@dataclass(frozen=True)
class FleetComparison:
    """One metric of one workload and variant on all machines that measured it alike.

    ``verdict`` is on the mean of the machines, which are its rounds; Holm corrects it for the number of
    comparisons.
    ``prediction`` holds what another machine measures, in as long an experiment. There is neither that nor
    ``between`` for one machine alone. ``operation`` is what is counted, if not transactions.
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
    """Everything that can be said from the same comparisons on several machines.

    ``left_out`` are sentences: which comparisons are not combined, and why.
    """

    machines: tuple[FleetMachine, ...]
    comparisons: tuple[FleetComparison, ...]
    margin: float
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]
