"""pgtune's configuration for transaction processing.

A peer to compare pgdyno's own plan with.

A faithful copy of what pgtune computes (profile "oltp", Linux, data size left at its default), including what
pgdyno would not do; nothing here is advice.

Source: le0pard/pgtune, src/features/configuration/configurationSlice.js at 7caef27 (2026-07-30).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pgdyno.experiments.peers._contract import Peer, PeerFacts, Storage

KB_PER_MB, KB_PER_GB = 1 << 10, 1 << 20
OLTP_CONNECTIONS = 300
DEFAULT_WORKER_PROCESSES = 8
IO_CONCURRENCY: Mapping[Storage, int] = {"hdd": 2, "ssd": 200, "san": 300, "nvme": 1000}


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return pgtune's configuration."""
    memory_kb, cpus, storage = facts.memory_bytes // 1024, facts.cpus, facts.storage
    allowed = facts.connections if facts.connections is not None else OLTP_CONNECTIONS
    shared_kb = memory_kb // 4
    return {
        "max_connections": str(allowed),
        "shared_buffers": _size(shared_kb),
        "effective_cache_size": _size(memory_kb * 3 // 4),
        **_maintenance(memory_kb),
        "checkpoint_completion_target": "0.9",
        "wal_buffers": _size(_wal_buffers_kb(shared_kb)),
        "default_statistics_target": "100",
        "random_page_cost": "4" if storage == "hdd" else "1.1",
        "effective_io_concurrency": str(IO_CONCURRENCY[storage]),
        "work_mem": _size(_work_mem_kb(memory_kb, shared_kb, allowed, cpus)),
        "huge_pages": "try" if shared_kb >= 2 * KB_PER_GB else "off",
        "jit": "off",
        "wal_compression": "lz4" if facts.major >= 15 else "on",
        **({"io_method": "io_uring"} if facts.major >= 18 else {}),
        "min_wal_size": "2GB",
        "max_wal_size": "8GB",
        **_parallel(cpus),
        **_autovacuum_workers(cpus),
    }


def _size(size_kb: int) -> str:
    """Print as pgtune does: in the largest unit that divides."""
    for unit, factor in (("GB", KB_PER_GB), ("MB", KB_PER_MB)):
        if size_kb % factor == 0:
            return f"{size_kb // factor}{unit}"
    return f"{size_kb}kB"


def _maintenance(memory_kb: int) -> dict[str, str]:
    maintenance_kb = min(memory_kb // 16, 8 * KB_PER_GB)
    settings = {"maintenance_work_mem": _size(maintenance_kb)}
    if maintenance_kb >= 2 * KB_PER_GB:
        settings["autovacuum_work_mem"] = "2GB"
    return settings


def _wal_buffers_kb(shared_kb: int) -> int:
    """Return 3 % of shared_buffers, at most 16 MB; from 14 MB on it is 16 MB."""
    size_kb = min(shared_kb * 3 // 100, 16 * KB_PER_MB)
    return 16 * KB_PER_MB if size_kb > 14 * KB_PER_MB else max(size_kb, 32)


def _work_mem_kb(memory_kb: int, shared_kb: int, connections: int, cpus: int) -> int:
    workers = cpus if cpus >= 4 else DEFAULT_WORKER_PROCESSES
    return max((memory_kb - shared_kb) // ((connections + workers) * 3), 4 * KB_PER_MB)


def _parallel(cpus: int) -> dict[str, str]:
    """Return nothing below 4 CPUs, as pgtune does."""
    if cpus < 4:
        return {}
    half = min(math.ceil(cpus / 2), 4)
    return {
        "max_worker_processes": str(cpus),
        "max_parallel_workers_per_gather": str(half),
        "max_parallel_workers": str(cpus),
        "max_parallel_maintenance_workers": str(half),
    }


def _autovacuum_workers(cpus: int) -> dict[str, str]:
    if cpus < 16:
        return {}
    return {"autovacuum_max_workers": "5" if cpus >= 32 else "4"}


PEER = Peer(
    title="pgtune, OLTP",
    source="le0pard/pgtune at 7caef27, 2026-07-30",
    settings=settings,
)
