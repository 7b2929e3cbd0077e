"""Load requests, and the interface of generators, which return command lines for ``process.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pgdyno.load.process import Command
from pgdyno.model.experiments.workload import PREPARED, Workload

MOST_GIVEN_UP = 1_000_000
"""Failed transactions after which pgdyno-driver ends, if it tolerates some; their share is checked later."""


@dataclass(frozen=True)
class Target:
    """The server that a generator connects to, and settings of its sessions.

    Passwords are passed through libpq's files or environment.
    """

    host: str
    port: int
    user: str
    database: str
    session_settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadRequest:
    """The amount of load: ``clients`` connections on ``threads`` threads; every arm has the same ``seed``."""

    clients: int
    threads: int
    seed: int
    duration_s: int  # an upper bound; the process is normally stopped earlier
    log_prefix: Path
    protocol: str = PREPARED  # if the generator supports it
    rate_tps: float | None = None  # open loop, total of all clients, if the generator supports it
    think_times_s: tuple[float, ...] = ()  # between transactions, equally likely; pgdyno-driver, no rate
    cpus: tuple[int, ...] = ()  # one per thread, for pinning, if the generator supports it
    max_errors: int = 0  # failed transactions that are tolerated; pgdyno-driver only
    is_part: bool = False  # other drivers issue the rest of the load; pgdyno-driver only
    first_schema: int | None = None  # the first client's, if each client has a schema with separate tables
    transactions: int | None = None  # per client, after which the load ends; pgdyno-driver only


class Generator(Protocol):
    """A third-party program that issues workloads."""

    def run(self, target: Target, workload: Workload, request: LoadRequest) -> Command:
        """Return the command that issues a workload and logs every transaction."""
        ...
