"""The order for a fleet: one experiment, and the machines that make it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MACHINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", re.ASCII)
"""As in ``fleet report NAME=FILE``. It is a worker's name, and part of names of files."""


@dataclass(frozen=True)
class OrderedMachine:
    """A machine. Each of its ``trials`` is the whole experiment once."""

    name: str
    trials: int
    price_per_hour: float | None = None


@dataclass(frozen=True)
class FleetOrder:
    """``command`` are the words after ``pgdyno``; no trial may take longer than ``limit_s``.

    ``store`` is the connection string of a database that has the trials; None: a file of this machine.
    """

    name: str
    command: tuple[str, ...]
    machines: tuple[OrderedMachine, ...]
    limit_s: float
    store: str | None = None


@dataclass(frozen=True)
class TrialOrder:
    """A worker's order: one trial. The same one again is answered with the same experiment.

    ``key`` is the trial's name among those of all fleets.
    """

    key: str
    command: tuple[str, ...]
    limit_s: float
