"""pgtune's configuration, for its types oltp and dw.

A peer to compare pgdyno's plan with.

A faithful copy of pgtune's computation (Linux, data size left at its default), including values that pgdyno
would not choose; nothing here is advice.

Source: le0pard/pgtune, src/features/configuration/configurationSlice.js at 7caef27 (2026-07-30).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.plan.peers._contract import Peer, PeerFacts, Purpose, Storage

KB_PER_MB, KB_PER_GB = 1 << 10, 1 << 20
DEFAULT_WORKER_PROCESSES = 8
IO_CONCURRENCY: Mapping[Storage, int] = {"hdd": 2, "ssd": 200, "san": 300, "nvme": 1000}
_MOST_PARALLEL = 4  # workers, unless a type has no limit


@dataclass(frozen=True)
class _Type:
    """The values that differ between its types."""

    connections: int
    maintenance_part: int  # divisor of memory
    work_mem_part: int  # divisor of the memory without shared_buffers
    random_page_cost: str  # except on a hard disk
    per_gather_at_most: int | None  # None: half of the CPUs
    fixed: Mapping[str, str]


_TYPES: Mapping[Purpose, _Type] = {
    Purpose.TRANSACTIONS: _Type(
        connections=300,
        maintenance_part=16,
        work_mem_part=1,
        random_page_cost="1.1",
        per_gather_at_most=_MOST_PARALLEL,
        fixed={
            "default_statistics_target": "100",
            "jit": "off",
            "min_wal_size": "2GB",
            "max_wal_size": "8GB",
        },
    ),
    Purpose.WAREHOUSE: _Type(
        connections=40,
        maintenance_part=8,
        work_mem_part=2,
        random_page_cost="4",
        per_gather_at_most=None,
        fixed={"default_statistics_target": "500", "min_wal_size": "4GB", "max_wal_size": "16GB"},
    ),
}


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return pgtune's configuration."""
    memory_kb, cpus, storage = facts.memory_bytes // 1024, facts.cpus, facts.storage
    type_ = _TYPES[facts.purpose]
    allowed = facts.connections if facts.connections is not None else type_.connections
    shared_kb = memory_kb // 4
    return {
        "max_connections": str(allowed),
        "shared_buffers": _size(shared_kb),
        "effective_cache_size": _size(memory_kb * 3 // 4),
        **_maintenance(memory_kb // type_.maintenance_part),
        "checkpoint_completion_target": "0.9",
        "wal_buffers": _size(_wal_buffers_kb(shared_kb)),
        "random_page_cost": "4" if storage == "hdd" else type_.random_page_cost,
        "effective_io_concurrency": str(IO_CONCURRENCY[storage]),
        "work_mem": _size(_work_mem_kb((memory_kb - shared_kb) // type_.work_mem_part, allowed, cpus)),
        "huge_pages": "try" if shared_kb >= 2 * KB_PER_GB else "off",
        "wal_compression": "lz4" if facts.major >= 15 else "on",
        **({"io_method": "io_uring"} if facts.major >= 18 else {}),
        **type_.fixed,
        **_parallel(cpus, type_.per_gather_at_most),
        **_autovacuum_workers(cpus),
    }


def _size(size_kb: int) -> str:
    """Format a size as pgtune does: in the largest unit that divides it."""
    for unit, factor in (("GB", KB_PER_GB), ("MB", KB_PER_MB)):
        if size_kb % factor == 0:
            return f"{size_kb // factor}{unit}"
    return f"{size_kb}kB"


def _maintenance(share_kb: int) -> dict[str, str]:
    maintenance_kb = min(share_kb, 8 * KB_PER_GB)
    settings = {"maintenance_work_mem": _size(maintenance_kb)}
    if maintenance_kb >= 2 * KB_PER_GB:
        settings["autovacuum_work_mem"] = "2GB"
    return settings


def _wal_buffers_kb(shared_kb: int) -> int:
    """Return 3 % of shared_buffers, at most 16 MB; from 14 MB on it is 16 MB."""
    size_kb = min(shared_kb * 3 // 100, 16 * KB_PER_MB)
    return 16 * KB_PER_MB if size_kb > 14 * KB_PER_MB else max(size_kb, 32)


def _work_mem_kb(memory_kb: int, connections: int, cpus: int) -> int:
    workers = cpus if cpus >= 4 else DEFAULT_WORKER_PROCESSES
    return max(memory_kb // ((connections + workers) * 3), 4 * KB_PER_MB)


def _parallel(cpus: int, per_gather_at_most: int | None) -> dict[str, str]:
    """Return the settings for parallel workers; like pgtune, none below 4 CPUs."""
    if cpus < 4:
        return {}
    half = math.ceil(cpus / 2)
    return {
        "max_worker_processes": str(cpus),
        "max_parallel_workers_per_gather": str(min(half, per_gather_at_most or half)),
        "max_parallel_workers": str(cpus),
        "max_parallel_maintenance_workers": str(min(half, _MOST_PARALLEL)),
    }


def _autovacuum_workers(cpus: int) -> dict[str, str]:
    if cpus < 16:
        return {}
    return {"autovacuum_max_workers": "5" if cpus >= 32 else "4"}


PEER = Peer(
    title="pgtune",
    source="le0pard/pgtune at 7caef27, 2026-07-30",
    settings=settings,
    kinds={Purpose.TRANSACTIONS: "OLTP", Purpose.WAREHOUSE: "DW"},
)
