"""What every peer has: a title, a date, a source, and one answer where it does not ask for the load."""

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
