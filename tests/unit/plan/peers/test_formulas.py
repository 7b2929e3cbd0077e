"""timescaledb-tune's and pgconfig's configurations.

The reference host's values were worked out from the tools' sources when these were studied, before this code
was written; those of other hosts are arithmetic by hand on the same sources.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import GB, MB

from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import PeerFacts, Purpose

REFERENCE = PeerFacts(24 * GB, 2, 18, "ssd")


def of(peer: str, facts: PeerFacts) -> dict[str, str]:
    settings = load()[peer].settings(facts)
    assert isinstance(settings, dict)
    return settings


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


def test_pgconfig_on_the_reference_host() -> None:
    assert of("pgconfig", REFERENCE) == {
        "shared_buffers": "6GB",
        "effective_cache_size": "18GB",
        "work_mem": "86MB",
        "maintenance_work_mem": "1GB",
        "min_wal_size": "2GB",
        "max_wal_size": "3GB",
        "checkpoint_completion_target": "0.9",
        "wal_buffers": "-1",
        "random_page_cost": "1.1",
        "effective_io_concurrency": "200",
        "maintenance_io_concurrency": "200",
        "io_method": "worker",
        "io_workers": "2",
        "io_max_combine_limit": "16",
        "io_max_concurrency": "128",
        "file_copy_method": "copy",  # in the code since 18; the notes on the tool do not list it
        "max_worker_processes": "8",
        "max_parallel_workers_per_gather": "2",
        "max_parallel_workers": "2",
        "max_connections": "100",
        "listen_addresses": "*",
    }


def test_pgconfig_rounds_to_whole_units_and_knows_hard_disks() -> None:
    settings = of("pgconfig", PeerFacts(6 * GB, 10, 18, "hdd", connections=50))
    assert settings["shared_buffers"] == "2GB"  # 1.5 GB
    assert settings["effective_cache_size"] == "5GB"  # 4.5 GB
    assert settings["work_mem"] == "43MB"  # 6 GB × 0.35 / 50 = 43.0 MB
    assert settings["maintenance_work_mem"] == "307MB"  # 307.2 MB
    assert settings["io_workers"] == "4"  # 40 % of ten CPUs
    assert (settings["random_page_cost"], settings["effective_io_concurrency"]) == ("4", "2")
    assert settings["max_connections"] == "50"


# As pgconfigctl prints them, built from 6cd37be: tune --profile DW with --ram, --cpus, --disk-type and -M.
PGCONFIG_WAREHOUSES = {
    PeerFacts(24 * GB, 2, 18, "ssd"): {
        "shared_buffers": "6GB", "effective_cache_size": "18GB", "work_mem": "123MB",
        "maintenance_work_mem": "1GB", "max_connections": "100", "random_page_cost": "1.1",
        "effective_io_concurrency": "200", "maintenance_io_concurrency": "200", "io_workers": "2",
        "io_max_combine_limit": "128", "io_max_concurrency": "256", "max_wal_size": "3GB",
        "max_parallel_workers": "2", "max_parallel_workers_per_gather": "2",
    },
    PeerFacts(6 * GB, 10, 18, "hdd", connections=50): {
        "shared_buffers": "2GB", "effective_cache_size": "5GB", "work_mem": "61MB",
        "maintenance_work_mem": "307MB", "max_connections": "50", "random_page_cost": "4",
        "effective_io_concurrency": "2", "io_workers": "5", "io_max_combine_limit": "128",
        "io_max_concurrency": "256",
    },
    PeerFacts(64 * GB, 16, 17, "san"): {
        "work_mem": "328MB", "maintenance_work_mem": "3GB", "effective_io_concurrency": "300",
    },
    PeerFacts(GB, 1, 18, "ssd"): {"work_mem": "5MB", "maintenance_work_mem": "51MB", "io_workers": "1"},
}  # fmt: skip


@pytest.mark.parametrize(("facts", "printed"), PGCONFIG_WAREHOUSES.items())
def test_pgconfig_for_a_data_warehouse(facts: PeerFacts, printed: dict[str, str]) -> None:
    settings = of("pgconfig", replace(facts, purpose=Purpose.WAREHOUSE))
    assert {name: settings[name] for name in printed} == printed
    assert set(settings) == set(of("pgconfig", facts))


@pytest.mark.parametrize("peer", ["amazon-rds", "azure-flexible", "cloud-sql", "timescaledb-tune"])
def test_who_does_not_ask_for_the_load_has_one_answer(peer: str) -> None:
    facts = PeerFacts(2400 * MB, 2, 18, "ssd", disk_bytes=40 * GB)
    assert of(peer, replace(facts, purpose=Purpose.WAREHOUSE)) == of(peer, facts)
    assert not load()[peer].kinds


@pytest.mark.parametrize("peer", ["pgconfig", "pgtune", "pg-configurator"])
def test_asynchronous_io_is_set_from_18_on(peer: str) -> None:
    assert "io_method" in of(peer, PeerFacts(8 * GB, 4, 18, "ssd"))
    assert "io_method" not in of(peer, PeerFacts(8 * GB, 4, 17, "ssd"))


@pytest.mark.parametrize("peer", sorted(load()))
def test_every_peer_says_what_it_is_and_from_when_and_where(peer: str) -> None:
    found = load()[peer]
    assert found.title
    assert any(year in found.source for year in ("2024", "2025", "2026"))
    assert of(peer, PeerFacts(2400 * MB, 2, 18, "ssd", disk_bytes=40 * GB))["shared_buffers"]


def test_the_catalogue_has_no_profile_of_the_whole_machine() -> None:
    assert list(load()) == [
        "amazon-rds", "azure-flexible", "cloud-sql", "pg-configurator", "pgconfig", "pgtune",
        "timescaledb-tune",
    ]  # fmt: skip
