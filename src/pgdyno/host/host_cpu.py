"""Times of a machine's CPUs, busy and stolen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostCpu:
    """Times of a set of CPUs in seconds since boot, read at ``at_s`` on the monotonic clock."""

    at_s: float
    busy_s: float
    steal_s: float
