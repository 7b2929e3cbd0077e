"""Requests to generators, and the command lines that ``process.py`` runs for them."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pgdyno.model.experiments.workload import PREPARED, Workload

MOST_GIVEN_UP = 1_000_000
"""Transactions after which our driver ends, where some may fail; how large a share may is decided later."""


@dataclass(frozen=True)
class Target:
    """The server that a generator connects to, and settings of its sessions.

    Passwords travel in libpq's own files or environment.
    """

    host: str
    port: int
    user: str
    database: str
    session_settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command line. ``stop_signal`` ends the program cleanly, with its log complete.

    ``environment`` is all that it gets: nothing of pgdyno's own.
    It has ended cleanly if its status is one of ``clean_statuses``; −N means that signal N ended it.
    """

    argv: tuple[str, ...]
    stop_signal: signal.Signals
    environment: Mapping[str, str] = field(default_factory=dict)
    clean_statuses: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class LoadRequest:
    """How much load: ``clients`` connections over ``threads`` threads, the same ``seed`` for every arm."""

    clients: int
    threads: int
    seed: int
    duration_s: int  # an upper bound; the process is normally stopped before
    log_prefix: Path
    protocol: str = PREPARED  # if the generator has it
    rate_tps: float | None = None  # over all clients, an open loop, if the generator has it
    think_times_s: tuple[float, ...] = ()  # between transactions, each as likely: of our driver's, no rate
    cpus: tuple[int, ...] = ()  # that the threads are pinned to, one each, if the generator can
    max_errors: int = 0  # transactions that may be given up, of our driver's
    is_part: bool = False  # of a load whose other parts other drivers issue; of our driver's
    first_schema: int | None = None  # of the first client, where each has one with tables of its own
    transactions: int | None = None  # of each client, after which the load ends; of our driver's


class Generator(Protocol):
    """A third-party program that issues workloads."""

    def run(self, target: Target, workload: Workload, request: LoadRequest) -> Command:
        """Return the command that issues a workload and logs every transaction."""
        ...
