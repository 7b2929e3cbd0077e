"""Splits a machine's CPUs between the server under test and the load generator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CLIENT_SHARE = 4  # one CPU in four issues load: arbitrary; a saturated client voids the block and says so


@dataclass(frozen=True)
class CpuSplit:
    """Which CPUs serve and which issue load; both are the same set when they are not isolated.

    ``spinners`` are processes that only keep these CPUs awake. ``load_host_threads`` is how many threads of
    each load host issue load instead of any CPU here; empty: none.
    """

    server: tuple[int, ...]
    client: tuple[int, ...]
    is_isolated: bool
    spinners: tuple[int, ...] = ()
    load_host_threads: tuple[int, ...] = ()

    @property
    def pinned(self) -> tuple[int, ...]:
        """The CPUs here that the load's threads are pinned to, if it has some of its own."""
        return self.client if self.is_isolated else ()

    @property
    def client_count(self) -> int:
        """How many CPUs issue load, here or on load hosts: a thread there takes one."""
        return sum(self.load_host_threads) or len(self.client)

    def saturation(self, used_s: Sequence[float], wall_s: float) -> float:
        """Return the share of its CPUs' time that the load used; of several load hosts the busiest one's."""
        counts = self.load_host_threads or (len(self.client),)
        shares = (used / (wall_s * count) for used, count in zip(used_s, counts, strict=bool(used_s)))
        return max(shares, default=0.0)  # of nothing that was read


def split_cpus(cpus: Iterable[int], *, is_wanted: bool) -> CpuSplit:
    """Give the last quarter of the CPUs, at least one, to the client; share them all if there is only one."""
    ordered = tuple(sorted(cpus))
    if not is_wanted or len(ordered) < 2:
        return CpuSplit(ordered, ordered, is_isolated=False)
    clients = max(1, len(ordered) // _CLIENT_SHARE)
    return CpuSplit(ordered[:-clients], ordered[-clients:], is_isolated=True)
