"""Amazon RDS, against values that were seen there or are published."""

from __future__ import annotations

import re

import pytest
from tests.fix_settings import GB

from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import PeerFacts

SEEN_MEMORY = 16_469_354_000  # of a db.t4g.xlarge: 1,727.9 times 9,531,392, as its 1,727 connections tell


def of(peer: str, facts: PeerFacts) -> dict[str, str]:
    settings = load()[peer].settings(facts)
    assert isinstance(settings, dict)
    return settings


def megabytes(size: str) -> float:
    match = re.fullmatch(r"(\d+)kB", size)
    assert match is not None
    return int(match[1]) / 1024


def test_rds_as_it_was_seen_on_an_instance_of_16_gib() -> None:
    settings = of("amazon-rds", PeerFacts(SEEN_MEMORY, 4, 16, "ssd"))
    assert settings["max_connections"] == "1727"
    assert megabytes(settings["shared_buffers"]) == pytest.approx(3927, abs=1)
    assert megabytes(settings["effective_cache_size"]) == pytest.approx(7853, abs=1)
    assert megabytes(settings["autovacuum_work_mem"]) == pytest.approx(491, abs=1)
    assert megabytes(settings["maintenance_work_mem"]) == pytest.approx(257, abs=1)
    assert settings["max_worker_processes"] == settings["max_parallel_workers"] == "8"


def test_rds_as_it_was_seen_on_the_smallest_instance() -> None:
    settings = of("amazon-rds", PeerFacts(int(81.9 * 9_531_392), 2, 16, "ssd"))
    assert settings["max_connections"] == "81"
    assert megabytes(settings["shared_buffers"]) == pytest.approx(186, abs=1)
    assert megabytes(settings["effective_cache_size"]) == pytest.approx(372, abs=1)
    assert settings["autovacuum_work_mem"] == settings["maintenance_work_mem"] == "65536kB"  # 64 MB
    assert (settings["max_wal_size"], settings["min_wal_size"]) == ("2048MB", "192MB")
    assert settings["autovacuum_vacuum_cost_limit"] == "200"


def test_rds_gives_large_instances_more_vacuuming() -> None:
    settings = of("amazon-rds", PeerFacts(320 * GB, 64, 16, "ssd"))
    assert settings["autovacuum_vacuum_cost_limit"] == "2400"  # log2(320 / 20) × 600
    assert settings["autovacuum_max_workers"] == "5"
    assert settings["max_connections"] == "5000"
