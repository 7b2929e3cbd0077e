"""Costs of a host's basic operations, measured for a moment."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.facts import Fact


@dataclass(frozen=True)
class WakeUp:
    """How long a process takes to be woken by another CPU, in µs: the median of many times.

    ``busy_us`` is the same while a process of the lowest priority keeps the woken CPU from being idle.
    """

    idle_us: Fact[float]
    busy_us: Fact[float]


@dataclass(frozen=True)
class Probes:
    """Costs of single operations. ``stolen_share``: of all CPUs' time during the measurement."""

    wake_up: WakeUp
    system_call_ns: Fact[float]
    page_fault_ns: Fact[float]
    fsync_8kb_us: Fact[float]
    stolen_share: Fact[float]
