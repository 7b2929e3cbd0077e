"""Find out which page sizes a server's memory can use here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pgdyno.apply.host_state import HostState, this_host
from pgdyno.base.errors import SettingError, UsageError
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import HugePagePool
from pgdyno.host.kernel_file import choices_in
from pgdyno.host.machine.memory import inspect_memory
from pgdyno.model.experiments.bundled_study import PageSupport, Pool
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.local_machine import workspace

_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage"
_CHOICES = (f"{_TRANSPARENT}/enabled", f"{_TRANSPARENT}/shmem_enabled")
_SINCE = 15  # shared_memory_size_in_huge_pages


def find_page_support(installation: Installation, settings: Mapping[str, str]) -> PageSupport:
    """Count the pages that a server with these settings takes, and try whether they can be reserved.

    Raises: UsageError for a server that does not tell; PrivilegeError for an ordinary user, who cannot
    reserve any; OwnershipError, LockHeldError, RefusedError, StorageError if nothing may be changed.
    """
    if installation.major < _SINCE:
        raise UsageError(
            f"{installation.title} does not report how many huge pages it needs",
            hint=f"measure with PostgreSQL {_SINCE} or later",
        )
    tree = Tree(Path("/"))
    found = inspect_memory(tree).huge_pages.or_else({})
    needed = _pages_needed(installation, settings, found)
    pools = {size_bytes: _pool(size_bytes, pool, needed[size_bytes]) for size_bytes, pool in found.items()}
    texts = read_kernel_files(tree, _CHOICES)
    choices = {path: choices_in(text) for path, fact in texts.items() if (text := fact.or_none()) is not None}
    return PageSupport(_tried(this_host(), pools), choices)


def _pool(size_bytes: int, found: HugePagePool, needed: int) -> Pool:
    """Return a pool with room for a server: pages in use, lent ones among them, are not free for it."""
    in_use, present = found.total - (found.free - found.reserved), found.total - found.surplus
    path = f"/sys/kernel/mm/hugepages/hugepages-{size_bytes // 1024}kB/nr_hugepages"
    return Pool(path, present, max(present, in_use + needed))


def _tried(state: HostState, pools: Mapping[int, Pool]) -> dict[int, Pool]:
    """Reserve all pages together once and give them back; the largest, which are rarest, first."""
    tried: dict[int, Pool] = {}
    for size_bytes, pool in sorted(pools.items(), reverse=True):
        had = [one for one in tried.values() if one.obstacle is None]
        wanted = {one.path: str(one.wanted) for one in (*had, pool)}
        state.check(wanted)
        try:
            with state.holding(wanted):
                tried[size_bytes] = pool
        except SettingError as error:
            tried[size_bytes] = replace(pool, obstacle=f"{error.message} ({error.detail})")
    return tried


def _pages_needed(
    installation: Installation, settings: Mapping[str, str], sizes_bytes: Iterable[int]
) -> dict[int, int]:
    """Return the pages of each size that a server takes."""
    place = workspace()
    with place.scratch() as scratch:
        data_directory = scratch / "huge-pages"
        initialise(installation, place.account, data_directory)
        return {
            size_bytes: installation.huge_pages_needed(place.account, data_directory, settings, size_bytes)
            for size_bytes in sizes_bytes
        }
