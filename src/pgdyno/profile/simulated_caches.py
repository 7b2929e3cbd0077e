"""Caches for callgrind's simulation: this processor's caches, as far as callgrind supports them.

callgrind simulates a first and a last level. The processor's second level is used as the last level, because
the third is shared with all other processes, and one session's work does not determine its misses. The number
of a cache's sets must be a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.host.host import Cache

_OPTIONS = {"L1i": ("--I1", 1, "Instruction"), "L1d": ("--D1", 1, "Data"), "L2": ("--LL", 2, "Unified")}


@dataclass(frozen=True)
class Geometry:
    """A simulated cache: ``sets`` of ``ways`` lines each."""

    name: str
    sets: int
    ways: int
    line_bytes: int

    @property
    def size_bytes(self) -> int:
        """The cache's size."""
        return self.sets * self.ways * self.line_bytes


@dataclass(frozen=True)
class SimulatedCaches:
    """The known caches, callgrind's options for them, and their differences from this processor's."""

    known: tuple[Geometry, ...]
    remarks: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """Callgrind's options for the known caches; it uses its default for the others."""
        return tuple(
            f"{_OPTIONS[one.name][0]}={one.size_bytes},{one.ways},{one.line_bytes}" for one in self.known
        )

    @property
    def text(self) -> str:
        """The caches as text."""
        return "; ".join(f"{one.name} {numbers.size(one.size_bytes)}, {one.ways} ways" for one in self.known)


def simulated_caches(caches: Sequence[Cache]) -> SimulatedCaches:
    """Return the caches to simulate, from a processor's caches."""
    known, remarks = [], []
    for name, (_, level, kind) in _OPTIONS.items():
        cache = next((one for one in caches if (one.level, one.kind) == (level, kind)), None)
        if cache is None:
            remarks.append(
                f"simulated: this machine does not report its {name} cache: callgrind's default is used"
            )
            continue
        sets = _power_of_two(cache.size_bytes // (cache.ways * cache.line_bytes))
        found = Geometry(name, sets, cache.ways, cache.line_bytes)
        known.append(found)
        if found.size_bytes < cache.size_bytes:
            remarks.append(
                f"simulated: {name} has {numbers.size(found.size_bytes)} instead of this processor's "
                f"{numbers.size(cache.size_bytes)}: callgrind supports only powers of two"
            )
    return SimulatedCaches(tuple(known), tuple(remarks))


def _power_of_two(number: int) -> int:
    return 1 << (max(1, number).bit_length() - 1)
