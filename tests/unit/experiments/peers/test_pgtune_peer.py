"""pgtune's configuration, against pgtune itself.

The expected values were printed by pgtune's own JavaScript (configurationSlice.js at 7caef27, run with
node: osType linux, dbType oltp, dbSize left at its default), not by the code under test.
"""

from __future__ import annotations

import pytest
from tests.fix_settings import GB, MAJORS, server_of

from pgdyno.experiments.peers.pgtune import LeftOut, accepted_by, pgtune_settings

COMMON = {
    "checkpoint_completion_target": "0.9",
    "default_statistics_target": "100",
    "jit": "off",
    "min_wal_size": "2GB",
    "max_wal_size": "8GB",
}


def test_the_reference_host_gets_exactly_what_pgtune_prints() -> None:
    assert pgtune_settings(memory_bytes=24 * GB, cpus=2, version_major=18, storage="ssd") == {
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
    settings = pgtune_settings(
        memory_bytes=64 * GB, cpus=16, version_major=15, storage="nvme", connections=100
    )
    assert settings == {
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
    assert pgtune_settings(memory_bytes=4 * GB, cpus=4, version_major=14, storage="hdd") == {
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
    settings = pgtune_settings(memory_bytes=256 * GB, cpus=32, version_major=17, storage="san")
    assert settings["maintenance_work_mem"] == "8GB"
    assert settings["autovacuum_work_mem"] == "2GB"
    assert settings["autovacuum_max_workers"] == "5"
    assert settings["effective_io_concurrency"] == "300"
    assert settings["work_mem"] == "202135kB"


def test_the_smallest_host_meets_pgtunes_floors() -> None:
    settings = pgtune_settings(memory_bytes=1 * GB, cpus=1, version_major=18, storage="ssd")
    assert settings["wal_buffers"] == "7864kB"
    assert settings["work_mem"] == "4MB"
    assert settings["huge_pages"] == "off"


def test_what_the_build_rejects_is_left_out_and_named() -> None:
    settings = pgtune_settings(memory_bytes=24 * GB, cpus=2, version_major=18, storage="ssd")
    peer = accepted_by(server_of(18), settings)
    assert peer.left_out == (
        LeftOut(
            "wal_compression",
            "lz4",
            'invalid value for parameter "wal_compression": "lz4"; this server\'s build knows: pglz, on, off',
        ),
        LeftOut(
            "io_method",
            "io_uring",
            'invalid value for parameter "io_method": "io_uring"; this server\'s build knows: sync, worker',
        ),
    )
    assert set(settings) - set(peer.settings) == {"wal_compression", "io_method"}


def test_a_setting_of_another_major_is_left_out_too() -> None:
    settings = pgtune_settings(memory_bytes=24 * GB, cpus=2, version_major=18, storage="ssd")
    assert LeftOut("io_method", "io_uring", 'PostgreSQL 15.18 has no setting "io_method"') in (
        accepted_by(server_of(15), settings).left_out
    )


@pytest.mark.parametrize("major", MAJORS)
def test_what_remains_is_accepted_by_every_major(major: int) -> None:
    server = server_of(major)
    settings = pgtune_settings(memory_bytes=24 * GB, cpus=2, version_major=major, storage="ssd")
    for name, value in accepted_by(server, settings).settings.items():
        server.settings[name].check(value)
