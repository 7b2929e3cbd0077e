"""Splits a machine's CPUs between the server under test and the load generator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CLIENT_SHARE = 4  # one CPU in four issues load: arbitrary; saturated client CPUs make the block void


@dataclass(frozen=True)
class CpuSplit:
    """The CPUs that serve and those that issue load; both are the same set if not isolated.

    ``spinners`` are PIDs of processes that only keep these CPUs awake. ``load_host_threads`` is the number of
    load threads on each load host, if these issue the load instead of CPUs here; otherwise empty.
    """

    server: tuple[int, ...]
    client: tuple[int, ...]
    is_isolated: bool
    spinners: tuple[int, ...] = ()
    load_host_threads: tuple[int, ...] = ()

    @property
    def pinned(self) -> tuple[int, ...]:
        """The CPUs here that the load's threads are pinned to; empty if not isolated."""
        return self.client if self.is_isolated else ()

    @property
    def client_count(self) -> int:
        """The number of CPUs that issue load, here or on load hosts: each thread there takes one."""
        return sum(self.load_host_threads) or len(self.client)

    def saturation(self, used_s: Sequence[float], wall_s: float) -> float:
        """Return the load's share of its CPUs' time; of several load hosts, that of the busiest."""
        counts = self.load_host_threads or (len(self.client),)
        shares = (used / (wall_s * count) for used, count in zip(used_s, counts, strict=bool(used_s)))
        return max(shares, default=0.0)  # empty if not read


def split_cpus(cpus: Iterable[int], *, is_wanted: bool) -> CpuSplit:
    """Assign the last quarter of the CPUs, at least one, to the client; a single CPU is shared."""
    ordered = tuple(sorted(cpus))
    if not is_wanted or len(ordered) < 2:
        return CpuSplit(ordered, ordered, is_isolated=False)
    clients = max(1, len(ordered) // _CLIENT_SHARE)
    return CpuSplit(ordered[:-clients], ordered[-clients:], is_isolated=True)
