"""pgconfig's configurations.

The reference host's values were worked out from the tools' sources when these were studied, before this code
was written; those of other hosts are arithmetic by hand on the same sources.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import GB
from tests.unit.plan.peers.test_contract import REFERENCE, of

from pgdyno.plan.peers._contract import PeerFacts, Purpose


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
