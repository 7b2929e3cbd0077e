"""timescaledb-tune's configuration, for its default profile on Linux.

It depends on memory and CPUs; the size of the WAL disk is left at its default, "not given".

Source: timescale/timescaledb-tune, pkg/pgtune and internal/parse at c7a642b (v0.19.0, 2026-05-27).
"""

from __future__ import annotations

from pgdyno.plan.peers._contract import GB, KB, MB, Peer, PeerFacts

_BACKGROUND_WORKERS = 16
_BUILT_IN_PROCESSES = 3
_CONNECTIONS = ((2 * GB, 25), (4 * GB, 50), (6 * GB, 75))  # by maximum memory; 100 above
_LOCKS = ((32 * GB, 1024), (16 * GB, 512), (8 * GB, 256))  # by minimum memory; 128 below
_SMALLEST_CHANGE = 0.001  # fraction of a unit that the tool drops


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return the lines that the tool writes."""
    memory_bytes = facts.memory_bytes
    connections = facts.connections or _connections(memory_bytes)
    return {
        "shared_preload_libraries": "timescaledb",
        "shared_buffers": _size(memory_bytes // 4),
        "effective_cache_size": _size(memory_bytes * 3 // 4),
        "maintenance_work_mem": _size(min(memory_bytes / GB * 128 * MB, 2047 * MB)),
        "work_mem": _size(_work_mem_bytes(memory_bytes, facts.cpus, connections)),
        **(_parallel(facts.cpus) if facts.cpus > 1 else {}),
        "wal_buffers": "16MB" if memory_bytes >= 2 * GB else _size(memory_bytes / GB * 7864 * KB),
        "min_wal_size": "512MB",
        "max_wal_size": "1GB",
        "default_statistics_target": "100",
        "random_page_cost": "1.1",
        "checkpoint_completion_target": "0.9",
        "max_connections": str(connections),
        "max_locks_per_transaction": _locks(memory_bytes),
        "autovacuum_max_workers": "10",
        "autovacuum_naptime": "10",
        "default_toast_compression": "lz4",
        "jit": "off",
        "effective_io_concurrency": "256",
    }


def _connections(memory_bytes: int) -> int:
    return next((count for limit, count in _CONNECTIONS if memory_bytes <= limit), 100)


def _locks(memory_bytes: int) -> str:
    return str(next((count for limit, count in _LOCKS if memory_bytes >= limit), 128))


def _work_mem_bytes(memory_bytes: int, cpus: int, connections: int) -> float:
    """Return 400 MB per GB of memory, divided by connections and half of the CPUs; at least 64 kB."""
    return max(memory_bytes / GB * (400 * MB / connections) / _half(cpus), 64 * KB)


def _parallel(cpus: int) -> dict[str, str]:
    return {
        "timescaledb.max_background_workers": str(_BACKGROUND_WORKERS),
        "max_worker_processes": str(_BUILT_IN_PROCESSES + _BACKGROUND_WORKERS + cpus),
        "max_parallel_workers_per_gather": str(_half(cpus)),
        "max_parallel_workers": str(cpus),
    }


def _half(cpus: int) -> int:
    """Return half of the CPUs, rounded half up as in Go."""
    return (cpus + 1) // 2


def _size(size_bytes: float) -> str:
    """Format a size as the tool does: in the largest unit, or the next smaller one if precision is lost."""
    whole_bytes = int(size_bytes)
    units = (("GB", GB), ("MB", MB), ("kB", KB))
    place = next(number for number, (_, factor) in enumerate(units) if whole_bytes >= factor or factor == KB)
    name, factor = units[place]
    if factor == KB:
        return f"{max(1, round(whole_bytes / KB))}kB"
    value = whole_bytes / factor
    if value - int(value) <= _SMALLEST_CHANGE:
        return f"{int(value)}{name}"
    below, smaller = units[place + 1]
    return f"{int(whole_bytes / smaller)}{below}"


PEER = Peer(
    title="timescaledb-tune, default profile",
    source="timescale/timescaledb-tune v0.19.0 at c7a642b, 2026-05-27",
    settings=settings,
)
