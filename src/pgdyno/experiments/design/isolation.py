"""Splits a machine's CPUs between the server under test and the load generator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_CLIENT_SHARE = 4  # one CPU in four issues load: arbitrary; a saturated client voids the block and says so


@dataclass(frozen=True)
class CpuSplit:
    """Which CPUs serve and which issue load; both are the same set when they are not isolated.

    ``spinners`` are processes that only keep these CPUs awake. ``load_host_threads`` is how many threads of
    another host issue load instead of any CPU here; 0: none.
    """

    server: tuple[int, ...]
    client: tuple[int, ...]
    is_isolated: bool
    spinners: tuple[int, ...] = ()
    load_host_threads: int = 0

    @property
    def client_count(self) -> int:
        """How many CPUs issue load, here or on the load host: a thread there takes one."""
        return self.load_host_threads or len(self.client)


def split_cpus(cpus: Iterable[int], *, is_wanted: bool) -> CpuSplit:
    """Give the last quarter of the CPUs, at least one, to the client; share them all if there is only one."""
    ordered = tuple(sorted(cpus))
    if not is_wanted or len(ordered) < 2:
        return CpuSplit(ordered, ordered, is_isolated=False)
    clients = max(1, len(ordered) // _CLIENT_SHARE)
    return CpuSplit(ordered[:-clients], ordered[-clients:], is_isolated=True)
