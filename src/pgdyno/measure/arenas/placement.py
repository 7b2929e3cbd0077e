"""Placement of a load: where its turns are issued; by default on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.load._contract import LoadRequest
from pgdyno.load.driver import ArmTarget
from pgdyno.load.driver_process import DriverJob, DriverProcess
from pgdyno.load.driver_turns import DrainedTurns
from pgdyno.load.turns import Turns
from pgdyno.model.experiments.workload import DRIVER


@dataclass(frozen=True)
class ArmsLoad:
    """A workload on all arms, as it would be issued on the servers' machine.

    ``arms`` are in the order of connection; ``order`` has their numbers. ``prefixes`` are the local paths of
    each arm's logs, by its number. ``job`` returns the generator's job for a part of the load, given the arms
    as addressed from the issuing host.
    """

    process: DriverProcess
    arms: Sequence[ArmTarget]
    order: Sequence[int]
    prefixes: Sequence[Path]
    job: Callable[[Sequence[ArmTarget], LoadRequest], str]
    request: LoadRequest
    when_ended: Callable[[], None]
    generator: str = DRIVER


class Placement(Protocol):
    """Where a load is issued."""

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns of a load issued there."""
        ...

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the driver of a step; a single host issues the whole step."""
        ...

    def takes_jobs(self, generator: str) -> bool:
        """Whether a generator there receives its job, and the commands for its turns, from pgdyno."""
        ...

    def require_here(self) -> None:
        """Raise UsageError unless this is the servers' machine: some loads can only be issued here."""
        ...


@dataclass(frozen=True)
class Here:
    """The servers' machine."""

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns of the unchanged load."""
        job = load.job(load.arms, load.request)
        return DrainedTurns(load.process, job, load.prefixes, load.order, load.when_ended)

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the unchanged driver."""
        return DriverJob(load.process, load.job(load.arms, load.request), load.prefixes)

    def takes_jobs(self, generator: str) -> bool:
        """Whether the generator is pgdyno-driver: others get a command line here."""
        return generator == DRIVER

    def require_here(self) -> None:
        """Do nothing."""
