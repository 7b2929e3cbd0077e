"""Finds out what pages a server's memory can be put on here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgdyno.app import wiring
from pgdyno.app.host_state import HostState
from pgdyno.host.kernel_files import read_kernel_files
from pgdyno.host.memory import inspect_memory
from pgdyno.host.tree import Tree
from pgdyno.model.errors import SettingError, UsageError
from pgdyno.model.host import HugePagePool
from pgdyno.model.kernel_file import choices_in
from pgdyno.server.installation import Installation
from pgdyno.server.instance import initialise
from pgdyno.studies._contract import PageSupport, Pool

_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage"
_CHOICES = (f"{_TRANSPARENT}/enabled", f"{_TRANSPARENT}/shmem_enabled")
_SINCE = 15  # shared_memory_size_in_huge_pages


def find_page_support(installation: Installation, settings: Mapping[str, str]) -> PageSupport:
    """Count the pages that a server with these settings takes, and try whether they can be reserved.

    Raises: UsageError for a server that does not tell; PrivilegeError for an ordinary user, who cannot
    reserve any; LockHeldError, RefusedError, StorageError if the machine cannot be changed now.
    """
    if installation.major < _SINCE:
        raise UsageError(
            f"{installation.title} does not tell how many huge pages it takes",
            hint=f"measure with PostgreSQL {_SINCE} or later",
        )
    tree, state = Tree(Path("/")), wiring.host_state()
    found = inspect_memory(tree).huge_pages.or_else({})
    pools = {
        size_bytes: _pool(state, size_bytes, pool, needed)
        for (size_bytes, pool), needed in zip(
            found.items(), _pages_needed(installation, settings, found), strict=True
        )
    }
    texts = read_kernel_files(tree, _CHOICES)
    choices = {path: choices_in(text) for path, fact in texts.items() if (text := fact.or_none()) is not None}
    return PageSupport(pools, choices)


def _pool(state: HostState, size_bytes: int, found: HugePagePool, needed: int) -> Pool:
    """Return a pool, after reserving the pages once and giving them back."""
    path = f"/sys/kernel/mm/hugepages/hugepages-{size_bytes // 1024}kB/nr_hugepages"
    others = found.total - found.surplus - (found.free - found.reserved)
    state.check({path: ""})
    try:
        with state.holding({path: str(others + needed)}):
            return Pool(path, others, needed)
    except SettingError as error:
        return Pool(path, others, needed, f"{error.message} ({error.detail})")


def _pages_needed(
    installation: Installation, settings: Mapping[str, str], sizes_bytes: Mapping[int, HugePagePool]
) -> list[int]:
    place = wiring.workspace()
    with place.scratch() as scratch:
        data_directory = scratch / "huge-pages"
        initialise(installation, place.account, data_directory)
        return [
            installation.huge_pages_needed(place.account, data_directory, settings, size_bytes)
            for size_bytes in sizes_bytes
        ]
