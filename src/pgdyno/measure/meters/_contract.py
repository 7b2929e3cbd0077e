"""The contents of a meter file, and the sources it may read.

A meter file has ``METER = Meter(…)``, ``read(context) -> Counters`` and the pure ``value(delta,
transactions) -> float``, or None where nothing happened that it is about. Counters only ever grow while a
server runs; every round starts servers afresh, so a meter is read at a block's beginning and end and the
difference is its value. Where the metric is a level, what is read at the end is its value. A meter that
cannot be read (no permission, no such view) returns None,
and its metric is then absent from the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

Counters = tuple[float, ...]


@dataclass(frozen=True)
class Meter:
    """A meter: the metric that it yields (``model/experiments/metric.py``) and where the figure comes from.

    ``reports_late`` tells statistics that backends report when they end, and until then up to a second late.
    """

    metric: str
    source: str
    reports_late: bool = False


class MeterContext(Protocol):
    """Sources for meters: server processes, the load's CPU time, the server by SQL."""

    def server_pids(self) -> Iterable[int]:
        """Return the postmaster, first, and all its children."""
        ...

    def client_cpu_us(self) -> tuple[float, ...] | None:
        """Return the CPU microseconds that the load has cost each host so far; None if there is no load."""
        ...

    def cpu_ns(self, pid: int) -> int | None:
        """Return the nanoseconds on a CPU of all threads of a process; None if it has ended."""
        ...

    def read_process(self, pid: int, name: str) -> str | None:
        """Return ``/proc/PID/NAME`` of a process or thread; None if it has ended or may not be read."""
        ...

    def threads(self, pid: int) -> Iterable[int]:
        """Return the threads of a process, itself among them; none if it has ended."""
        ...

    def add_up(self, counter: str, by_pid: Mapping[int, float]) -> float:
        """Return the sum of a counter over all processes seen so far; ended ones count as last read.

        Without their memory a sum over live processes would fall whenever one ends.
        """
        ...

    def query(self, sql: str) -> tuple[float | None, ...]:
        """Return the one row of a query, as floats."""
        ...

    def has_relation(self, name: str) -> bool:
        """Whether the server has a table or view of this name."""
        ...


def per_transaction(delta: Counters, transactions: int) -> float:
    """Return the sum of the differences per transaction."""
    return sum(delta) / transactions


def level(after: Counters, transactions: int) -> float:  # noqa: ARG001 — as every meter's ``value``
    """Return the sum of the last reading."""
    return sum(after)


def number_of(text: str | None, label: str) -> float | None:
    """Return the number in the line ``label: number …`` of a /proc file; None if it has no such line."""
    for line in (text or "").splitlines():
        name, _, value = line.partition(":")
        if name == label:
            return float(value.split()[0])
    return None
