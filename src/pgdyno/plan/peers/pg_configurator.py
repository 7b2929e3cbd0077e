"""pg-configurator's configuration of a server without replicas, for its duties oltp and statistic.

Its monitoring settings (logs, statistics, auto_explain, pg_stat_statements) are not in the rule.

Source: the package pg-configurator 0.11.1 (2026-10): conf_perf.py, and make_conf of configurator.py with
``--replication-mode none`` and its other defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.base.facts import Unknown
from pgdyno.plan.peers._contract import GB, KB, MB, Peer, PeerFacts, Purpose, Storage

_DISK_SCORES: dict[Storage, int] = {"hdd": 15, "san": 45, "ssd": 75, "nvme": 90}
_MOST_CONNECTIONS, _FEWEST_CONNECTIONS = 500, 20
_BACKEND_BYTES = 10 * MB
_BUFFERS_SHARE, _CLIENT_SHARE, _MAINTENANCE_SHARE = 0.25, 0.2, 0.1
_CONCURRENT_OPERATORS = 4.0
_IO_CONCURRENCY = ((90, 256), (75, 128), (50, 64), (25, 16))  # by the disk's score; 2 below
_LOCKS = ((256, 1024), (64, 512), (16, 256), (4, 128))  # by memory in GB; 64 below
_WORKERS = 8  # the minimum
_LOCK_BYTES, _PREDICATE_LOCK_BYTES = 270, 64
_STATISTICS_BY_CPUS = ((16, 5000), (8, 2500), (4, 1000))  # maximum by number of CPUs; 500 below
_STATISTICS_BY_GB = ((128, 5000), (32, 2500), (8, 1000))  # maximum by memory; 500 below


@dataclass(frozen=True)
class _Duty:
    """The values that differ between duties and depend on the server; constant ones: ``BY_PURPOSE``."""

    connections_per_cpu: int
    work_mem_at_most: int
    hash_mem: float
    cpus_per_autovacuum_worker: int
    parallel_share: float  # of the CPUs
    workers_of_a_query: int  # maximum
    statistics_target: int
    combined_kb: tuple[int, int]  # size of combined reads, on slower and faster disks
    faster_from: int  # score of a faster disk
    vacuum_buffers: int  # maximum in bytes
    transaction_timeout: str  # 17 and later


_DUTIES: Mapping[Purpose, _Duty] = {
    Purpose.TRANSACTIONS: _Duty(
        connections_per_cpu=5,
        work_mem_at_most=32 * MB,
        hash_mem=1.5,
        cpus_per_autovacuum_worker=6,
        parallel_share=0.35,
        workers_of_a_query=2,
        statistics_target=500,
        combined_kb=(128, 256),
        faster_from=50,
        vacuum_buffers=2 * MB,
        transaction_timeout="1h",
    ),
    Purpose.WAREHOUSE: _Duty(
        connections_per_cpu=4,
        work_mem_at_most=256 * MB,
        hash_mem=2.0,
        cpus_per_autovacuum_worker=8,
        parallel_share=0.75,
        workers_of_a_query=8,
        statistics_target=2500,
        combined_kb=(512, 1024),
        faster_from=75,
        vacuum_buffers=32 * MB,
        transaction_timeout="8h",
    ),
}
_COMBINED_KB_OF_17 = 256  # the maximum of this version


@dataclass(frozen=True)
class _Budget:
    """The resources of one server. ``memory_bytes`` excludes 10 % and 256 MB for the system."""

    memory_bytes: float
    cpus: int
    disk_score: int
    duty: _Duty

    @property
    def connections_at_most(self) -> int:
        unassigned = 1 - _BUFFERS_SHARE - _CLIENT_SHARE - _MAINTENANCE_SHARE
        return int(self.memory_bytes * unassigned * 0.67 / _BACKEND_BYTES)

    @property
    def connections(self) -> int:
        wanted = _FEWEST_CONNECTIONS + (self.cpus - 1) * self.duty.connections_per_cpu
        return min(wanted, self.connections_at_most, _MOST_CONNECTIONS)

    @property
    def autovacuum_workers(self) -> int:
        return min(max(3, math.ceil(self.cpus / self.duty.cpus_per_autovacuum_worker) + 2), 20)

    @property
    def parallel_workers(self) -> int:
        if self.cpus < 2 or self.memory_bytes < 2 * GB:
            return 0
        by_cpus = max(1, int(self.cpus * self.duty.parallel_share))
        return min(32, by_cpus, max(1, int(self.memory_bytes / (2 * GB))))

    @property
    def worker_processes(self) -> int:
        return min(64, max(_WORKERS, self.parallel_workers + 6))

    @property
    def locks(self) -> int:
        tier = next((locks for gb, locks in _LOCKS if self.memory_bytes >= gb * GB), 64)
        return min(2048, max(tier, 64 + math.ceil(self.connections / 4)))


def settings(facts: PeerFacts) -> dict[str, str] | Unknown:
    """Return the settings that it prints, without those for monitoring."""
    memory_bytes = facts.memory_bytes * 0.9 - 256 * MB
    budget = _Budget(memory_bytes, facts.cpus, _DISK_SCORES[facts.storage], _DUTIES[facts.purpose])
    if budget.connections_at_most < _FEWEST_CONNECTIONS:
        return Unknown(f"it requires memory for at least {_FEWEST_CONNECTIONS} connections")
    return {
        **ALWAYS,
        **BY_PURPOSE[facts.purpose],
        **{name: value for major, values in SINCE.items() if facts.major >= major for name, value in values},
        **_memory(budget),
        **_autovacuum(budget),
        **_connections(budget, facts.major),
        **_storage(budget, facts.major),
        **_workers(budget, facts.major),
        **({"transaction_timeout": budget.duty.transaction_timeout} if facts.major >= 17 else {}),
        "default_statistics_target": str(_statistics_target(budget)),
    }


def _memory(budget: _Budget) -> dict[str, str]:
    work_mem, temp_buffers = _client_memory(budget)
    maintenance_bytes = budget.memory_bytes * _MAINTENANCE_SHARE * 0.5
    sessions = min(max(4, math.ceil(budget.cpus / 8)), 16)
    decoding = min(256 * MB, max(64 * MB, budget.memory_bytes * _CLIENT_SHARE * 0.25))
    return {
        "shared_buffers": _size(budget.memory_bytes * _BUFFERS_SHARE),
        "effective_cache_size": _size(_cache_bytes(budget)),
        "work_mem": _size(work_mem),
        "temp_buffers": _size(temp_buffers),
        "maintenance_work_mem": _size(min(maintenance_bytes / sessions, 2 * GB)),
        "autovacuum_work_mem": _size(min(maintenance_bytes / budget.autovacuum_workers, GB)),
        "logical_decoding_work_mem": _size(decoding),
    }


def _client_memory(budget: _Budget) -> tuple[float, float]:
    """Return work_mem and temp_buffers for two active sessions per CPU."""
    active = min(budget.connections, max(4, budget.cpus * 2))
    share = budget.memory_bytes * _CLIENT_SHARE
    temp_buffers = min(max(8 * MB, share * 0.1 / active), 32 * MB)
    parts = active * _CONCURRENT_OPERATORS * budget.duty.hash_mem
    work_mem = max(share - temp_buffers * active, MB * parts) / parts
    return min(max(work_mem, MB), budget.duty.work_mem_at_most), temp_buffers


def _cache_bytes(budget: _Budget) -> float:
    """Return the memory left for the kernel's cache and shared_buffers."""
    processes = budget.connections + budget.worker_processes + budget.autovacuum_workers
    locks = budget.locks * processes * _LOCK_BYTES
    predicate_locks = _predicate_locks(budget) * budget.connections * _PREDICATE_LOCK_BYTES
    used = budget.connections * _BACKEND_BYTES + locks + predicate_locks
    rest = budget.memory_bytes * (1 - _CLIENT_SHARE - _MAINTENANCE_SHARE) - used
    return max(budget.memory_bytes * _BUFFERS_SHARE, rest)


def _autovacuum(budget: _Budget) -> dict[str, str]:
    cost_limit = str(500 + budget.disk_score * 20)
    delay = "10ms" if budget.disk_score < 25 else "5ms" if budget.disk_score < 60 else "2ms"
    return {
        "autovacuum_max_workers": str(budget.autovacuum_workers),
        "autovacuum_vacuum_cost_limit": cost_limit,
        "vacuum_cost_limit": cost_limit,
        "autovacuum_vacuum_cost_delay": delay,
        "vacuum_cost_delay": delay,
    }


def _connections(budget: _Budget, major: int) -> dict[str, str]:
    predicate_locks = _predicate_locks(budget)
    reserved = str(max(1, min(5, int(budget.connections * 0.02))))
    return {
        "max_connections": str(budget.connections),
        "superuser_reserved_connections": str(max(3, min(10, int(budget.connections * 0.03)))),
        **({"reserved_connections": reserved} if major >= 16 else {}),
        "max_locks_per_transaction": str(budget.locks),
        "max_pred_locks_per_transaction": str(predicate_locks),
        "max_pred_locks_per_page": str(min(16, max(2, predicate_locks // 64))),
        "max_pred_locks_per_relation": str(min(predicate_locks, max(64, predicate_locks // 2))),
    }


def _predicate_locks(budget: _Budget) -> int:
    return min(1024, max(64, budget.locks // 2))


def _storage(budget: _Budget, major: int) -> dict[str, str]:
    score = budget.disk_score
    concurrency = next((depth for limit, depth in _IO_CONCURRENCY if score >= limit), 2)
    slower, faster = budget.duty.combined_kb
    at_most = _COMBINED_KB_OF_17 if major == 17 else faster
    combined = f"{min(faster if score >= budget.duty.faster_from else slower, at_most)}kB"
    vacuum_buffers = min(budget.memory_bytes * _BUFFERS_SHARE / 8, budget.duty.vacuum_buffers)
    return {
        "random_page_cost": str(round(4.0 - score / 100 * 2.9, 2)),
        "effective_io_concurrency": str(concurrency),
        "maintenance_io_concurrency": str(max(2, min(64, concurrency // 2))),
        **({"vacuum_buffer_usage_limit": _size(vacuum_buffers)} if major >= 16 else {}),
        **({"io_combine_limit": combined} if major >= 17 else {}),
        **({"io_max_combine_limit": combined} if major >= 18 else {}),
    }


def _workers(budget: _Budget, major: int) -> dict[str, str]:
    per_query = str(min(budget.parallel_workers, budget.duty.workers_of_a_query))
    found = {
        "max_worker_processes": str(budget.worker_processes),
        "max_parallel_workers": str(budget.parallel_workers),
        "max_parallel_workers_per_gather": per_query,
        "max_parallel_maintenance_workers": per_query,
    }
    if major < 18:
        return found
    slots = str(min(20, budget.autovacuum_workers + 2))
    return {
        **found,
        "autovacuum_worker_slots": slots,
        "io_workers": str(min(8, max(3, math.ceil(budget.cpus / 8)))),
    }


def _statistics_target(budget: _Budget) -> int:
    """Return the duty's target, bounded by CPUs and memory."""
    by_cpus = next((most for cpus, most in _STATISTICS_BY_CPUS if budget.cpus >= cpus), 500)
    by_memory = next((most for gb, most in _STATISTICS_BY_GB if budget.memory_bytes >= gb * GB), 500)
    return min(budget.duty.statistics_target, by_cpus, by_memory)


def _size(size_bytes: float) -> str:
    """Format a size as it does: truncated, in the largest unit that gives at least 10."""
    name, factor = next(
        one
        for one in (("GB", GB), ("MB", MB), ("kB", KB), ("", 1))
        if size_bytes / 10 >= one[1] or not one[0]
    )
    return f"{int(size_bytes / factor)}{name}"


PEER = Peer(
    title="pg-configurator",
    source="pg-configurator 0.11.1, 2026-10",
    settings=settings,
    kinds={Purpose.TRANSACTIONS: "OLTP without replicas", Purpose.WAREHOUSE: "statistic without replicas"},
    left_out="its monitoring settings (logs, statistics, auto_explain, pg_stat_statements)",
)


ALWAYS: Mapping[str, str] = {
    "autovacuum": "on",
    "autovacuum_analyze_threshold": "50",
    "autovacuum_freeze_max_age": "200000000",
    "autovacuum_multixact_freeze_max_age": "400000000",
    "autovacuum_vacuum_insert_scale_factor": "0.02",
    "autovacuum_vacuum_insert_threshold": "50",
    "autovacuum_vacuum_threshold": "50",
    "authentication_timeout": "30s",
    "bgwriter_delay": "200ms",
    "bgwriter_lru_maxpages": "100",
    "bgwriter_lru_multiplier": "2.0",
    "checkpoint_completion_target": "0.9",
    "commit_delay": "0",
    "commit_siblings": "5",
    "default_toast_compression": "pglz",
    "fsync": "on",
    "full_page_writes": "on",
    "hot_standby": "on",
    "hot_standby_feedback": "off",
    "max_files_per_process": "1000",
    "max_logical_replication_workers": "0",
    "max_replication_slots": "0",
    "max_slot_wal_keep_size": "0MB",
    "max_sync_workers_per_subscription": "0",
    "max_wal_senders": "0",
    "password_encryption": "scram-sha-256",
    "seq_page_cost": "1",
    "shared_preload_libraries": "pg_stat_statements,auto_explain",
    "ssl_min_protocol_version": "TLSv1.2",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "wal_buffers": "-1",
    "wal_compression": "on",
    "wal_keep_size": "0MB",
    "wal_level": "replica",
    "wal_log_hints": "on",
    "wal_receiver_status_interval": "0",
    "wal_receiver_timeout": "0",
    "wal_sender_timeout": "0",
    "wal_writer_delay": "200ms",
    "wal_writer_flush_after": "1MB",
}
"""For all supported versions and duties."""

SINCE: Mapping[int, tuple[tuple[str, str], ...]] = {
    15: (("wal_compression", "pglz"),),
    16: (("max_parallel_apply_workers_per_subscription", "0"),),
    18: (
        ("autovacuum_vacuum_max_threshold", "100000"),
        ("idle_replication_slot_timeout", "0"),
        ("io_max_concurrency", "-1"),
        ("io_method", "worker"),
    ),
}
"""Values that later versions add or change, by major version."""

BY_PURPOSE: Mapping[Purpose, Mapping[str, str]] = {
    Purpose.TRANSACTIONS: {
        "autovacuum_analyze_scale_factor": "0.0075",
        "autovacuum_naptime": "20s",
        "autovacuum_vacuum_scale_factor": "0.015",
        "checkpoint_timeout": "10min",
        "client_connection_check_interval": "10s",
        "deadlock_timeout": "1s",
        "hash_mem_multiplier": "1.5",
        "idle_in_transaction_session_timeout": "10min",
        "idle_session_timeout": "6h",
        "jit": "off",
        "jit_above_cost": "100000",
        "jit_inline_above_cost": "500000",
        "jit_optimize_above_cost": "500000",
        "lock_timeout": "10s",
        "max_standby_streaming_delay": "45s",
        "max_wal_size": "4800MB",
        "min_parallel_index_scan_size": "1MB",
        "min_parallel_table_scan_size": "16MB",
        "min_wal_size": "1200MB",
        "parallel_setup_cost": "1500",
        "parallel_tuple_cost": "0.12",
        "statement_timeout": "15min",
        "tcp_keepalives_count": "6",
        "tcp_keepalives_idle": "90s",
        "tcp_keepalives_interval": "15s",
        "tcp_user_timeout": "180s",
    },
    Purpose.WAREHOUSE: {
        "autovacuum_analyze_scale_factor": "0.01",
        "autovacuum_naptime": "30s",
        "autovacuum_vacuum_scale_factor": "0.02",
        "checkpoint_timeout": "30min",
        "client_connection_check_interval": "30s",
        "deadlock_timeout": "2s",
        "hash_mem_multiplier": "2.0",
        "idle_in_transaction_session_timeout": "1h",
        "idle_session_timeout": "24h",
        "jit": "on",
        "jit_above_cost": "50000",
        "jit_inline_above_cost": "250000",
        "jit_optimize_above_cost": "250000",
        "lock_timeout": "1min",
        "max_standby_streaming_delay": "5min",
        "max_wal_size": "14GB",
        "min_parallel_index_scan_size": "256kB",
        "min_parallel_table_scan_size": "4MB",
        "min_wal_size": "3600MB",
        "parallel_setup_cost": "500",
        "parallel_tuple_cost": "0.05",
        "statement_timeout": "4h",
        "tcp_keepalives_count": "3",
        "tcp_keepalives_idle": "300s",
        "tcp_keepalives_interval": "30s",
        "tcp_user_timeout": "390s",
    },
}
"""For all supported versions, for its duties oltp and statistic.

max_wal_size follows from its assumption of 4 MB/s of WAL between checkpoints.
"""
