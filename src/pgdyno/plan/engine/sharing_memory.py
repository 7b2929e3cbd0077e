"""Reduce shared_buffers so that interleaved servers fit into memory together. Pure.

The pools of huge pages become smaller with them. None of it happens unless the data fits twice into what is
left of shared_buffers: otherwise their size would be what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant

MEMORY_SHARE = 0.7
"""Of the available memory for all servers' shared memory: the rest holds data and backends."""

_ESTIMATED_WELL = 0.95  # sizes are estimates here; before measuring the servers' own programs are asked
_STEP_BYTES = 64 << 20
_BUFFERS = "shared_buffers"


@dataclass(frozen=True)
class Memory:
    """The memory of servers side by side. ``size_of`` estimates one's shared memory in bytes.

    ``buffers_of`` is what it has of shared_buffers, in bytes.
    """

    available_bytes: int
    data_bytes: int
    size_of: Callable[[Variant], int]
    buffers_of: Callable[[Variant], int]

    def holds(self, variants: Sequence[Variant]) -> bool:
        """Whether all these servers fit at once, with their pools of huge pages."""
        needed = sum(max(self.size_of(one), _pools_bytes(one)) for one in variants)
        return needed <= _ESTIMATED_WELL * MEMORY_SHARE * self.available_bytes


def with_smaller_buffers(variants: Sequence[Variant], plan: Variant, memory: Memory) -> tuple[Variant, ...]:
    """Return the variants with as much of shared_buffers as fits; with all of it where that is too little.

    ``plan`` is the one of them that the pools of huge pages were planned for. Each has a pool for itself.
    """
    largest_bytes, planned_bytes = max(map(memory.buffers_of, variants)), memory.buffers_of(plan)
    smaller = range(_down(largest_bytes), 2 * memory.data_bytes, -_STEP_BYTES)
    sizes = (largest_bytes, *smaller)
    candidates = (
        tuple(_with_buffers(one, size, planned_bytes, memory) for one in variants) for size in sizes
    )
    whole = next(candidates)
    return whole if memory.holds(whole) else next(filter(memory.holds, candidates), whole)


def with_pools_for(variant: Variant, size_bytes: int) -> Variant:
    """Return a variant whose pools of huge pages, if it has any, hold just its shared memory of this size."""
    pools = {path: str(-(-size_bytes // _page_bytes(path))) for path in variant.files if _is_pool(path)}
    if not size_bytes:  # of a server that does not tell
        return variant
    return replace(variant, settings={**variant.settings, **pools})


def _down(size_bytes: int) -> int:
    return size_bytes // _STEP_BYTES * _STEP_BYTES


def _with_buffers(variant: Variant, buffers_bytes: int, planned_bytes: int, memory: Memory) -> Variant:
    """Return a variant with at most so much of shared_buffers, and pools for that.

    ``planned_bytes`` are what the pools were planned for: they lose what a server has less than that, and
    hold all of its shared memory in any case. A server that has to take huge pages does not start on too few.
    """
    own_bytes = min(buffers_bytes, memory.buffers_of(variant))
    if own_bytes == planned_bytes == memory.buffers_of(variant):
        return variant
    is_less = memory.buffers_of(variant) > buffers_bytes
    buffers = {_BUFFERS: f"{own_bytes >> 20}MB"} if is_less else {}
    smaller = replace(variant, settings={**variant.settings, **buffers})
    less_bytes, needed_bytes = max(0, planned_bytes - own_bytes), memory.size_of(smaller)
    pools = {
        path: str(max(int(pages) - less_bytes // _page_bytes(path), -(-needed_bytes // _page_bytes(path))))
        for path, pages in variant.files.items()
        if _is_pool(path)
    }
    return replace(smaller, settings={**smaller.settings, **pools})


def _pools_bytes(variant: Variant) -> int:
    return sum(int(pages) * _page_bytes(path) for path, pages in variant.files.items() if _is_pool(path))


def _is_pool(key: str) -> bool:
    return kind_of(key) == HUGE_PAGES


def _page_bytes(path: str) -> int:
    """Return the size of a pool's pages; its directory is named after it: ``hugepages-2048kB``."""
    return int(path.split("/")[-2].removeprefix("hugepages-").removesuffix("kB")) << 10
