"""pgconfig.org's configuration, for its profiles OLTP and DW.

Sizes are rounded to whole units, as it prints them: 1.2 GB as 1GB, 1.5 GB as 2GB.

Source: pgconfig/api, pkg/category, pkg/rules and pkg/input/bytes at 6cd37be (2025-12-28).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.plan.peers._contract import GB, KB, MB, Peer, PeerFacts, Purpose

_CONNECTIONS = 100


@dataclass(frozen=True)
class _Profile:
    """The values that differ between its profiles."""

    memory_share: float  # for the connections' work_mem
    io_workers_share: float  # of the CPUs
    combine_limit: str  # in pages
    io_concurrency: str


_PROFILES: Mapping[Purpose, _Profile] = {
    Purpose.TRANSACTIONS: _Profile(0.35, 0.3, combine_limit="16", io_concurrency="128"),
    Purpose.WAREHOUSE: _Profile(0.5, 0.4, combine_limit="128", io_concurrency="256"),
}
_HARD_DISK_SHARE = 0.1  # of the CPUs, for additional workers
_CONCURRENCY = {"hdd": 2, "ssd": 200, "san": 300, "nvme": 200}  # it knows HDD, SSD and SAN


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return the lines that it prints."""
    connections = facts.connections or _CONNECTIONS
    profile = _PROFILES[facts.purpose]
    memory_bytes, concurrency = facts.memory_bytes, str(_CONCURRENCY[facts.storage])
    return {
        "shared_buffers": _size(memory_bytes * 0.25),
        "effective_cache_size": _size(memory_bytes * 0.75),
        "work_mem": _size(memory_bytes * profile.memory_share / connections),
        "maintenance_work_mem": _size(memory_bytes * 0.05),
        "min_wal_size": "2GB",
        "max_wal_size": "3GB",
        "checkpoint_completion_target": "0.9",
        "wal_buffers": "-1",
        "listen_addresses": "*",
        "max_connections": str(connections),
        "random_page_cost": "4" if facts.storage == "hdd" else "1.1",
        "effective_io_concurrency": concurrency,
        "maintenance_io_concurrency": concurrency,
        **(_asynchronous(facts, profile) if facts.major >= 18 else {}),
        "max_worker_processes": "8",
        "max_parallel_workers_per_gather": "2",
        "max_parallel_workers": "2",
    }


def _asynchronous(facts: PeerFacts, profile: _Profile) -> dict[str, str]:
    """Return the settings for asynchronous I/O."""
    share = profile.io_workers_share + (_HARD_DISK_SHARE if facts.storage == "hdd" else 0)
    return {
        "io_method": "worker",
        "io_workers": str(min(max(2, math.ceil(facts.cpus * share)), facts.cpus)),
        "io_max_combine_limit": profile.combine_limit,
        "io_max_concurrency": profile.io_concurrency,
        "file_copy_method": "copy",
    }


def _size(size_bytes: float) -> str:
    """Round half up to the largest unit that gives at least 1."""
    name, factor = next(one for one in (("GB", GB), ("MB", MB), ("kB", KB)) if size_bytes >= one[1])
    return f"{math.floor(size_bytes / factor + 0.5)}{name}"


PEER = Peer(
    title="pgconfig.org",
    source="pgconfig/api at 6cd37be, 2025-12-28",
    settings=settings,
    kinds={Purpose.TRANSACTIONS: "OLTP", Purpose.WAREHOUSE: "DW"},
)
