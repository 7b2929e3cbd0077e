"""Caches for callgrind's simulation: this processor's, as far as callgrind can be like them.

It has a first level and a last one. The second level of the processor is taken for the last: the third is
shared with all others, and a session's own work says nothing about it. The number of a cache's sets has to be
a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model import numbers
from pgdyno.model.hosts.cache import Cache

_OPTIONS = {"L1i": ("--I1", 1, "Instruction"), "L1d": ("--D1", 1, "Data"), "L2": ("--LL", 2, "Unified")}


@dataclass(frozen=True)
class SimulatedCaches:
    """Options of callgrind, the caches in words, and where they are not this processor's."""

    options: tuple[str, ...]
    text: str
    remarks: tuple[str, ...]


def simulated_caches(caches: Sequence[Cache]) -> SimulatedCaches:
    """Return callgrind's options; for a cache that is not known there is none, and it takes its own."""
    options, words, remarks = [], [], []
    for name, (option, level, kind) in _OPTIONS.items():
        cache = next((one for one in caches if (one.level, one.kind) == (level, kind)), None)
        if cache is None:
            remarks.append(
                f"simulated: this machine does not tell its {name} cache: callgrind's own is taken"
            )
            continue
        sets = cache.size_bytes // (cache.ways * cache.line_bytes)
        size = _power_of_two(sets) * cache.ways * cache.line_bytes
        options.append(f"{option}={size},{cache.ways},{cache.line_bytes}")
        words.append(f"{name} {numbers.size(size)}, {cache.ways} ways")
        if size < cache.size_bytes:
            remarks.append(
                f"simulated: {name} has {numbers.size(size)} of this processor's "
                f"{numbers.size(cache.size_bytes)}: callgrind has powers of two alone"
            )
    return SimulatedCaches(tuple(options), "; ".join(words), tuple(remarks))


def _power_of_two(number: int) -> int:
    return 1 << (max(1, number).bit_length() - 1)
