"""Places that turns of a load are issued from; here is the usual one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.load._contract import LoadRequest
from pgdyno.load.drained import DrainedTurns
from pgdyno.load.driver import ArmTarget
from pgdyno.load.driver_process import DriverJob, DriverProcess
from pgdyno.load.turns import Turns
from pgdyno.model.experiments.workload import DRIVER


@dataclass(frozen=True)
class ArmsLoad:
    """A workload on all arms, as it would be issued here, beside the servers.

    ``arms`` are in the order in which they are connected: ``order`` has their numbers. ``prefixes`` are where
    the logs of each arm are to be here, by its number. ``job`` returns the generator's job for a part of it,
    with the arms as they are seen from where that is issued.
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
    """A place."""

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns of a load, issued from there."""
        ...

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the driver of a step, which one host issues from its beginning to its end."""
        ...

    def takes_jobs(self, generator: str) -> bool:
        """Whether a generator takes its job, and the words for its turns, from us there."""
        ...

    def require_here(self) -> None:
        """Raise UsageError unless it is here: other loads are issued from nowhere else."""
        ...


@dataclass(frozen=True)
class Here:
    """The place beside the servers."""

    def turns(self, load: ArmsLoad) -> Turns:
        """Return turns of the load as it is."""
        job = load.job(load.arms, load.request)
        return DrainedTurns(load.process, job, load.prefixes, load.order, load.when_ended)

    def step(self, load: ArmsLoad) -> DriverJob:
        """Return the driver as it is."""
        return DriverJob(load.process, load.job(load.arms, load.request), load.prefixes)

    def takes_jobs(self, generator: str) -> bool:
        """Whether it is our driver: other programs have command lines here."""
        return generator == DRIVER

    def require_here(self) -> None:
        """Do nothing."""
