"""Decide which host-wide settings may differ between interleaved arms.

A pool of huge pages can hold the pages of several servers. Values that take effect immediately and leave no
residue can be written at every turn (``Lever.is_instant``). With all other values, one arm would measure the
residue of another: plans leave them out (``Lever.takes_turns``); measuring them takes alternating trials.

Shared_buffers are reduced so that interleaved servers fit into memory together. Their pools of huge pages
shrink accordingly. Shared_buffers are never reduced to less than twice the size of the data: otherwise the
measurement would show the effect of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.metadata import LeverMetadata
from pgdyno.plan.levers import load

MEMORY_SHARE = 0.7
"""Share of the available memory for all servers' shared memory; the rest is for data and backends."""
_ESTIMATE_MARGIN = 0.95  # sizes are estimates here; before measuring, the servers' programs report exact ones
_STEP_BYTES = 64 << 20
_BUFFERS = "shared_buffers"


@dataclass(frozen=True)
class Memory:
    """The memory of interleaved servers.

    ``size_of`` estimates a variant's shared memory in bytes; ``buffers_of`` returns its shared_buffers in
    bytes.
    """

    available_bytes: int
    data_bytes: int
    size_of: Callable[[Variant], int]
    buffers_of: Callable[[Variant], int]

    def holds(self, variants: Sequence[Variant]) -> bool:
        """Whether all these servers fit into memory at once, with their pools of huge pages."""
        needed = sum(max(self.size_of(one), _pools_bytes(one)) for one in variants)
        return needed <= _ESTIMATE_MARGIN * MEMORY_SHARE * self.available_bytes


def not_shareable(variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the kernel files that must have the same value for all of these variants in a duet."""
    paths = dict.fromkeys(path for variant in variants for path in variant.files)
    return tuple(path for path in paths if len(variants) > 1 and not _is_shareable(path, variants))


@dataclass(frozen=True)
class SideBySide:
    """Variants that can take turns. ``as_found`` are the kernel files removed from all of them."""

    variants: tuple[Variant, ...]
    as_found: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on the values left as found; empty without such values."""
        return note_on_unmeasured(self.as_found)


def note_on_unmeasured(paths: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence on kernel files left as found; empty without ``paths``."""
    names = ", ".join(map(display_name, paths))
    why = "not measured, and left as found, because the machine has one value for all servers"
    return (f"{why}: {names}",) if names else ()


def side_by_side(variants: Sequence[Variant]) -> SideBySide:
    """Return the variants adapted for taking turns on one machine.

    A server uses its full share of a pool of huge pages, or none: ``on`` or ``off`` instead of ``try``, which
    would use leftover pages of other servers. Values that cannot be switched per turn, or not fast enough,
    are left as found for all variants.
    """
    exact = tuple(_with_exact_pages(variant, variants) for variant in variants)
    as_found = tuple(dict.fromkeys([*not_shareable(exact), *_slow_to_switch(exact)]))
    return SideBySide(tuple(_without(as_found, one) for one in exact), as_found)


def _without(paths: Collection[str], variant: Variant) -> Variant:
    kept = {key: value for key, value in variant.settings.items() if key not in paths}
    return replace(variant, settings=kept)


def _slow_to_switch(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield the files with different values that the kernel needs a considerable part of a turn to apply."""
    slow = [lever for lever in _instant_levers() if not lever.takes_turns]
    for path in dict.fromkeys(path for variant in variants for path in variant.files):
        differs = len({variant.files.get(path) for variant in variants}) > 1
        if differs and any(fnmatchcase(path, pattern) for lever in slow for pattern in lever.files):
            yield path


def _with_exact_pages(variant: Variant, variants: Sequence[Variant]) -> Variant:
    if not any(_is_pool(path) for one in variants for path in one.files):
        return variant
    takes_pages = any(map(_is_pool, variant.files))
    return replace(variant, settings={**variant.settings, "huge_pages": "on" if takes_pages else "off"})


def _is_pool(path: str) -> bool:
    return kind_of(path) == HUGE_PAGES


def _is_shareable(path: str, variants: Sequence[Variant]) -> bool:
    if all(variant.settings == variants[0].settings for variant in variants):
        return True  # only the build differs: all servers take the same share of a pool
    if _is_pool(path):
        return all(_takes_its_own(path, variant) for variant in variants)
    if len({variant.files.get(path) for variant in variants}) == 1:
        return True
    patterns = [pattern for lever in _instant_levers() for pattern in (*lever.files, *lever.reads)]
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _instant_levers() -> list[LeverMetadata]:
    return [module.LEVER for module in load().values() if module.LEVER.is_instant]


def _takes_its_own(path: str, variant: Variant) -> bool:
    """Whether a server takes exactly its variant's share of a pool, or nothing."""
    wants_pages = path in variant.files and variant.gucs.get("huge_pages") == "on"
    return wants_pages or variant.gucs.get("huge_pages") == "off"


def with_smaller_buffers(variants: Sequence[Variant], plan: Variant, memory: Memory) -> tuple[Variant, ...]:
    """Return the variants with the largest shared_buffers that fit; unchanged if that would be too little.

    ``plan`` is the variant that the pools of huge pages were planned for. Each variant has its own pool.
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
    """Return a variant with its pools of huge pages, if any, sized to hold exactly this shared memory."""
    pools = {path: str(-(-size_bytes // _page_bytes(path))) for path in variant.files if _is_pool(path)}
    if not size_bytes:  # the server does not report it
        return variant
    return replace(variant, settings={**variant.settings, **pools})


def _down(size_bytes: int) -> int:
    return size_bytes // _STEP_BYTES * _STEP_BYTES


def _with_buffers(variant: Variant, buffers_bytes: int, planned_bytes: int, memory: Memory) -> Variant:
    """Return a variant with shared_buffers of at most ``buffers_bytes``, and matching pools.

    The pools were planned for shared_buffers of ``planned_bytes``: they shrink by the difference, but always
    hold all of the server's shared memory. With huge_pages = on, a server does not start with too few pages.
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


def _page_bytes(path: str) -> int:
    """Return the size of a pool's pages, from the name of its directory: ``hugepages-2048kB``."""
    return int(path.split("/")[-2].removeprefix("hugepages-").removesuffix("kB")) << 10
