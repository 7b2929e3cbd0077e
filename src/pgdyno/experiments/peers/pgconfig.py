"""pgconfig.org's configuration, of its profile for transaction processing.

Sizes are rounded to whole units, as it prints them: 1.2 GB is printed as 1GB, 1.5 GB as 2GB.

Source: pgconfig/api, pkg/category, pkg/rules and pkg/input/bytes at 6cd37be (2025-12-28).
"""

from __future__ import annotations

import math

from pgdyno.experiments.peers._contract import GB, KB, MB, Peer, PeerFacts

_CONNECTIONS = 100
_MEMORY_SHARE = 0.35  # for what connections work in
_CONCURRENCY = {"hdd": 2, "ssd": 200, "san": 300, "nvme": 200}  # it knows HDD, SSD and SAN


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return the lines that it prints."""
    connections = facts.connections or _CONNECTIONS
    memory_bytes, concurrency = facts.memory_bytes, str(_CONCURRENCY[facts.storage])
    return {
        "shared_buffers": _size(memory_bytes * 0.25),
        "effective_cache_size": _size(memory_bytes * 0.75),
        "work_mem": _size(memory_bytes * _MEMORY_SHARE / connections),
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
        **(_asynchronous(facts) if facts.major >= 18 else {}),
        "max_worker_processes": "8",
        "max_parallel_workers_per_gather": "2",
        "max_parallel_workers": "2",
    }


def _asynchronous(facts: PeerFacts) -> dict[str, str]:
    """Return the settings of asynchronous I/O: workers for 30 % of the CPUs, 40 % with a hard disk."""
    share = 0.4 if facts.storage == "hdd" else 0.3
    return {
        "io_method": "worker",
        "io_workers": str(min(max(2, math.ceil(facts.cpus * share)), facts.cpus)),
        "io_max_combine_limit": "16",
        "io_max_concurrency": "128",
        "file_copy_method": "copy",
    }


def _size(size_bytes: float) -> str:
    """Round to the largest unit of which it is at least one, halves upwards."""
    name, factor = next(one for one in (("GB", GB), ("MB", MB), ("kB", KB)) if size_bytes >= one[1])
    return f"{math.floor(size_bytes / factor + 0.5)}{name}"


PEER = Peer(
    title="pgconfig.org, OLTP",
    source="pgconfig/api at 6cd37be, 2025-12-28",
    settings=settings,
)
