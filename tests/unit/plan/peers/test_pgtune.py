"""pgtune's configuration, against pgtune itself.

The expected values were printed by pgtune's own JavaScript (configurationSlice.js at 7caef27, run with
node: osType linux, dbType oltp or dw, dbSize left at its default), not by the code under test.
"""

from __future__ import annotations

from tests.fix_settings import GB

from pgdyno.plan.peers._contract import PeerFacts, Purpose
from pgdyno.plan.peers.pgtune import settings

COMMON = {
    "checkpoint_completion_target": "0.9",
    "default_statistics_target": "100",
    "jit": "off",
    "min_wal_size": "2GB",
    "max_wal_size": "8GB",
}
COMMON_TO_WAREHOUSES = {
    "checkpoint_completion_target": "0.9",
    "default_statistics_target": "500",
    "random_page_cost": "4",
    "min_wal_size": "4GB",
    "max_wal_size": "16GB",
}


def test_the_reference_host_gets_exactly_what_pgtune_prints() -> None:
    assert settings(PeerFacts(24 * GB, 2, 18, "ssd")) == {
        **COMMON,
        "max_connections": "300",
        "shared_buffers": "6GB",
        "effective_cache_size": "18GB",
        "maintenance_work_mem": "1536MB",
        "wal_buffers": "16MB",
        "random_page_cost": "1.1",
        "effective_io_concurrency": "200",
        "work_mem": "20426kB",
        "huge_pages": "try",
        "wal_compression": "lz4",
        "io_method": "io_uring",
    }


def test_stated_connections_many_cpus_and_nvme() -> None:
    found = settings(PeerFacts(64 * GB, 16, 15, "nvme", connections=100))
    assert found == {
        **COMMON,
        "max_connections": "100",
        "shared_buffers": "16GB",
        "effective_cache_size": "48GB",
        "maintenance_work_mem": "4GB",
        "autovacuum_work_mem": "2GB",
        "wal_buffers": "16MB",
        "random_page_cost": "1.1",
        "effective_io_concurrency": "1000",
        "work_mem": "144631kB",
        "huge_pages": "try",
        "wal_compression": "lz4",
        "autovacuum_max_workers": "4",
        "max_worker_processes": "16",
        "max_parallel_workers_per_gather": "4",
        "max_parallel_workers": "16",
        "max_parallel_maintenance_workers": "4",
    }


def test_a_small_host_with_a_disk_and_an_old_major() -> None:
    assert settings(PeerFacts(4 * GB, 4, 14, "hdd")) == {
        **COMMON,
        "max_connections": "300",
        "shared_buffers": "1GB",
        "effective_cache_size": "3GB",
        "maintenance_work_mem": "256MB",
        "wal_buffers": "16MB",
        "random_page_cost": "4",
        "effective_io_concurrency": "2",
        "work_mem": "4MB",
        "huge_pages": "off",
        "wal_compression": "on",
        "max_worker_processes": "4",
        "max_parallel_workers_per_gather": "2",
        "max_parallel_workers": "4",
        "max_parallel_maintenance_workers": "2",
    }


def test_a_large_host_meets_pgtunes_caps() -> None:
    found = settings(PeerFacts(256 * GB, 32, 17, "san"))
    assert found["maintenance_work_mem"] == "8GB"
    assert found["autovacuum_work_mem"] == "2GB"
    assert found["autovacuum_max_workers"] == "5"
    assert found["effective_io_concurrency"] == "300"
    assert found["work_mem"] == "202135kB"


def test_the_smallest_host_meets_pgtunes_floors() -> None:
    found = settings(PeerFacts(1 * GB, 1, 18, "ssd"))
    assert found["wal_buffers"] == "7864kB"
    assert found["work_mem"] == "4MB"
    assert found["huge_pages"] == "off"


def test_a_warehouse_on_the_reference_host_gets_exactly_what_pgtune_prints() -> None:
    assert settings(PeerFacts(24 * GB, 2, 18, "ssd", purpose=Purpose.WAREHOUSE)) == {
        **COMMON_TO_WAREHOUSES,
        "max_connections": "40",
        "shared_buffers": "6GB",
        "effective_cache_size": "18GB",
        "maintenance_work_mem": "3GB",
        "autovacuum_work_mem": "2GB",
        "wal_buffers": "16MB",
        "effective_io_concurrency": "200",
        "work_mem": "64MB",
        "huge_pages": "try",
        "wal_compression": "lz4",
        "io_method": "io_uring",
    }


def test_a_warehouse_with_many_cpus_has_half_of_them_for_a_query() -> None:
    assert settings(PeerFacts(64 * GB, 16, 15, "nvme", connections=100, purpose=Purpose.WAREHOUSE)) == {
        **COMMON_TO_WAREHOUSES,
        "max_connections": "100",
        "shared_buffers": "16GB",
        "effective_cache_size": "48GB",
        "maintenance_work_mem": "8GB",
        "autovacuum_work_mem": "2GB",
        "wal_buffers": "16MB",
        "effective_io_concurrency": "1000",
        "work_mem": "72315kB",
        "huge_pages": "try",
        "wal_compression": "lz4",
        "autovacuum_max_workers": "4",
        "max_worker_processes": "16",
        "max_parallel_workers_per_gather": "8",
        "max_parallel_workers": "16",
        "max_parallel_maintenance_workers": "4",
    }


def test_small_and_large_warehouses_meet_pgtunes_floors_and_caps() -> None:
    small = settings(PeerFacts(4 * GB, 4, 14, "hdd", purpose=Purpose.WAREHOUSE))
    assert (small["maintenance_work_mem"], small["work_mem"]) == ("512MB", "11915kB")
    assert (small["random_page_cost"], small["max_parallel_workers_per_gather"]) == ("4", "2")
    least = settings(PeerFacts(1 * GB, 1, 18, "ssd", purpose=Purpose.WAREHOUSE))
    assert (least["maintenance_work_mem"], least["work_mem"]) == ("128MB", "4MB")
    large = settings(PeerFacts(256 * GB, 32, 17, "san", purpose=Purpose.WAREHOUSE))
    assert (large["maintenance_work_mem"], large["work_mem"]) == ("8GB", "466033kB")
    assert (large["max_parallel_workers_per_gather"], large["max_parallel_maintenance_workers"]) == (
        "16",
        "4",
    )
