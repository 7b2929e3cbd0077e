"""Physical memory, page sizes and pools of huge pages."""

from __future__ import annotations

import re

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.kernel_files import chosen, key_values, number, size_bytes
from pgdyno.host.files.tree import Tree, parsed, together
from pgdyno.host.host import HugePagePool, Memory

_POOLS = "/sys/kernel/mm/hugepages"
_POOL_NAME = re.compile(r"^hugepages-(\d+)kB$")
_FIRST_MAPPING_BYTES = 4096  # enough for the first mapping; reading all mappings is slow


def inspect_memory(tree: Tree) -> Memory:
    """Return the host's memory, regardless of control group limits (see ``limits.py``)."""
    return Memory(
        total_bytes=meminfo(tree, "MemTotal"),
        available_bytes=meminfo(tree, "MemAvailable"),
        page_bytes=_page_bytes(tree),
        huge_pages=_huge_pages(tree),
        transparent_huge_pages=tree.read("/sys/kernel/mm/transparent_hugepage/enabled", chosen),
        huge_page_bytes=meminfo(tree, "Hugepagesize"),
    )


def meminfo(tree: Tree, key: str) -> Fact[int]:
    """Return a size from /proc/meminfo, in bytes."""
    return tree.read("/proc/meminfo", lambda text: size_of(key, text))


def size_of(key: str, text: str) -> int | Unknown:
    """Return the size of ``key`` in the text of meminfo or smaps, in bytes."""
    value = key_values(text).get(key)
    return Unknown(f"no {key}") if value is None else size_bytes(value)


def _page_bytes(tree: Tree) -> Fact[int]:
    first_mapping = tree.text("/proc/self/smaps", _FIRST_MAPPING_BYTES)
    return parsed(first_mapping, lambda text: size_of("KernelPageSize", text))


def _huge_pages(tree: Tree) -> Fact[dict[int, HugePagePool]]:
    names = tree.names(_POOLS)
    if isinstance(names.value, Unknown):
        return Fact(names.value, _POOLS)
    pools: dict[int, HugePagePool] = {}
    for name in names.value:
        match = _POOL_NAME.match(name)
        pool = _pool(tree, f"{_POOLS}/{name}")
        if isinstance(pool.value, Unknown):
            return Fact(pool.value, pool.source)
        if match is not None:
            pools[int(match[1]) * 1024] = pool.value
    return Fact(dict(sorted(pools.items())), _POOLS)


def _pool(tree: Tree, directory: str) -> Fact[HugePagePool]:
    files = {"total": "nr", "free": "free", "reserved": "resv", "surplus": "surplus"}
    counts = {name: tree.read(f"{directory}/{file}_hugepages", number) for name, file in files.items()}
    return parsed(together(counts, directory), lambda known: HugePagePool(**known))
