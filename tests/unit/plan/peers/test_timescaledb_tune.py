"""timescaledb-tune's configurations.

The reference host's values were worked out from the tools' sources when these were studied, before this code
was written; those of other hosts are arithmetic by hand on the same sources.
"""

from __future__ import annotations

from tests.fix_settings import GB
from tests.unit.plan.peers.test_contract import REFERENCE, of

from pgdyno.plan.peers._contract import PeerFacts


def test_timescaledb_tune_on_the_reference_host() -> None:
    assert of("timescaledb-tune", REFERENCE) == {
        "shared_preload_libraries": "timescaledb",
        "shared_buffers": "6GB",
        "effective_cache_size": "18GB",
        "maintenance_work_mem": "2047MB",
        "work_mem": "96MB",
        "timescaledb.max_background_workers": "16",
        "max_worker_processes": "21",
        "max_parallel_workers_per_gather": "1",
        "max_parallel_workers": "2",
        "wal_buffers": "16MB",
        "min_wal_size": "512MB",
        "max_wal_size": "1GB",
        "default_statistics_target": "100",
        "random_page_cost": "1.1",
        "checkpoint_completion_target": "0.9",
        "max_connections": "100",
        "max_locks_per_transaction": "512",
        "autovacuum_max_workers": "10",
        "autovacuum_naptime": "10",
        "default_toast_compression": "lz4",
        "jit": "off",
        "effective_io_concurrency": "256",
    }


def test_timescaledb_tune_counts_connections_by_memory_and_prints_what_is_not_whole_one_unit_below() -> None:
    settings = of("timescaledb-tune", PeerFacts(3 * GB, 5, 18, "ssd"))
    assert settings["max_connections"] == "50"
    assert settings["shared_buffers"] == "768MB"
    assert settings["effective_cache_size"] == "2304MB"  # 2.25 GB
    assert settings["work_mem"] == "8MB"  # 3 × 400 MB / 50 / 3, as half of five CPUs is three
    assert settings["max_parallel_workers_per_gather"] == "3"
    assert settings["max_locks_per_transaction"] == "128"


def test_timescaledb_tune_on_one_cpu_and_one_gigabyte() -> None:
    settings = of("timescaledb-tune", PeerFacts(GB, 1, 18, "ssd"))
    assert settings["wal_buffers"] == "7864kB"
    assert settings["work_mem"] == "16MB"  # 400 MB / 25 / 1
    assert not [name for name in settings if "parallel" in name or "worker_processes" in name]
