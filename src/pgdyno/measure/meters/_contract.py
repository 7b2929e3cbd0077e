"""The interface of a meter file, and the sources it may read.

A meter file has ``METER = Meter(…)``, ``read(context) -> Counters``, and the pure function ``value(delta,
transactions) -> float``, which returns None where the metric is undefined. Counters only increase while a
server runs, and every round starts new servers. So a meter is read at the start and the end of a block, and
the difference is its value. For a level metric, the reading at the end is the value. A meter that cannot be
read (no permission, no such view) returns None, and the results lack its metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

Counters = tuple[float, ...]


@dataclass(frozen=True)
class Meter:
    """A meter: its metric (``model/experiments/metric.py``) and the source of the figure.

    ``reports_late``: backends report these statistics up to a second late, and finally when they exit.
    """

    metric: str
    source: str
    reports_late: bool = False


class MeterContext(Protocol):
    """Sources for meters: server processes, the load's CPU time, SQL queries."""

    def server_pids(self) -> Iterable[int]:
        """Return the PIDs of the postmaster, first, and of all its children."""
        ...

    def client_cpu_us(self) -> tuple[float, ...] | None:
        """Return the load's CPU time so far, in µs by host; None if no load runs."""
        ...

    def cpu_ns(self, pid: int) -> int | None:
        """Return the CPU time of all threads of a process, in ns; None if it has exited."""
        ...

    def read_process(self, pid: int, name: str) -> str | None:
        """Return ``/proc/PID/NAME`` of a process or thread; None if it has exited or may not be read."""
        ...

    def threads(self, pid: int) -> Iterable[int]:
        """Return the TIDs of all threads of a process; empty if it has exited."""
        ...

    def add_up(self, counter: str, by_pid: Mapping[int, float]) -> float:
        """Return the sum of a counter over all processes seen so far; exited ones count as last read.

        A sum over live processes only would decrease whenever one exits.
        """
        ...

    def query(self, sql: str) -> tuple[float | None, ...]:
        """Return the single row of a query, as floats."""
        ...

    def has_relation(self, name: str) -> bool:
        """Whether the server has a table or view of this name."""
        ...


def per_transaction(delta: Counters, transactions: int) -> float:
    """Return the sum of the increments, per transaction."""
    return sum(delta) / transactions


def level(after: Counters, transactions: int) -> float:  # noqa: ARG001 — the contract's signature
    """Return the sum of the last reading."""
    return sum(after)


def number_of(text: str | None, label: str) -> float | None:
    """Return the number in the line ``label: number …`` of a /proc file; None if it has no such line."""
    for line in (text or "").splitlines():
        name, _, value = line.partition(":")
        if name == label:
            return float(value.split()[0])
    return None
