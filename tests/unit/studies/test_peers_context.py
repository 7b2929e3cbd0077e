"""pgdyno's own configurations beside the peers', and the machine that all of them are made for."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from tests.fix_settings import GB, MB, server_of
from tests.golden.synthetic_peers import experiment
from tests.unit.plan.test_layers_of_a_plan import line

from pgdyno.measure.bundled_study import Sizing
from pgdyno.model.plans.plan import HUGE_PAGES, KERNEL, PROCESS, SERVER, SETTING, Layer, Plan
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import MEMORY_SHARE
from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import PeerFacts, Purpose
from pgdyno.plan.peers.comparable import configured_peers
from pgdyno.store.experiments import open_store
from pgdyno.studies.bundled.peers import MEMORY
from pgdyno.studies.peer_machine import memory_for_each
from pgdyno.studies.peers_context import _as_recorded, on_equal_terms, own_arms, with_huge_pages

SWAPPINESS = "/proc/sys/vm/swappiness"
WORK_MEM = line(Layer.APPLICATION, SETTING, "work_mem", "8MB")
BUFFERS = line(Layer.APPLICATION, SETTING, "shared_buffers", "1GB")
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
BATCH = line(Layer.SYSTEM, PROCESS, "process.scheduling_policy", "batch")
GENERIC = line(Layer.APPLICATION, SETTING, "plan_cache_mode", "force_generic_plan")
KERNEL_FILE = line(Layer.SYSTEM, KERNEL, SWAPPINESS, "1")
BUILD = line(Layer.COMPILER, SERVER, "server", "built-00000000000a")
BASE = Variant("default", {"jit": "off"})


def test_the_plan_stands_on_the_same_programs_and_the_whole_stack_on_its_build() -> None:
    arms = own_arms(BASE, Plan((WORK_MEM, GENERIC, KERNEL_FILE, BUILD), (), (), None))
    rest = {"jit": "off", "work_mem": "8MB", SWAPPINESS: "1"}
    whole = {"jit": "off", "work_mem": "8MB", "plan_cache_mode": "force_generic_plan", SWAPPINESS: "1"}
    assert [(one.name, dict(one.settings), one.server) for one in arms] == [
        ("plan", whole, None),
        ("without-plan_cache_mode", rest, None),
        ("whole-stack", whole, "built-00000000000a"),
        ("whole-stack-without-plan_cache_mode", rest, "built-00000000000a"),
    ]


def test_without_a_build_and_without_such_a_setting_there_is_the_plan_alone() -> None:
    assert [one.name for one in own_arms(BASE, Plan((WORK_MEM,), (), (), None))] == ["plan"]


def test_two_arms_more_tell_whose_gain_is_whose() -> None:
    pool = line(Layer.SYSTEM, HUGE_PAGES, POOL, "600")
    plan = Plan((WORK_MEM, BUFFERS, GENERIC, pool, BATCH, BUILD), (), (), None)
    peers = {"pgconfig": {"shared_buffers": "2GB"}, "pgtune": {"shared_buffers": "1536MB", "work_mem": "5MB"}}
    alone, mixed = on_equal_terms(BASE, plan, server_of(18), peers)
    assert (alone.name, alone.server) == ("plan-settings", None)
    assert dict(alone.settings) == {"jit": "off", "work_mem": "8MB", "shared_buffers": "1GB"}
    assert (mixed.name, mixed.server) == ("pgtune-with-host", None)
    pages = int(mixed.settings[POOL])
    # 1536 MB of shared_buffers are 768 pages, and a few for what describes them.
    assert 768 < pages < 1.08 * 768
    assert dict(mixed.settings) == {
        "jit": "off",
        **peers["pgtune"],
        "huge_pages": "try",
        POOL: str(pages),
        "process.scheduling_policy": "batch",
    }


def test_a_service_that_insists_on_huge_pages_gets_them_where_the_plan_has_some() -> None:
    facts = PeerFacts(16 * GB, 2, 18, "ssd")
    peers = configured_peers(server_of(18), facts, clients=4).settings
    pool = line(Layer.SYSTEM, HUGE_PAGES, POOL, "600")
    reserved, notes = with_huge_pages(Plan((pool,), (), (), None), server_of(18), peers)
    # A quarter of 16 GB is 2048 pages; 1,802 connections take some more.
    assert reserved["amazon-rds"]["huge_pages"] == "on"
    assert 2048 < int(reserved["amazon-rds"][POOL]) < 1.15 * 2048
    assert [name for name, settings in reserved.items() if POOL in settings] == ["amazon-rds"]
    assert notes == []
    without, notes = with_huge_pages(Plan((), (), (), None), server_of(18), peers)
    assert without["amazon-rds"]["huge_pages"] == "off"
    assert notes == ["amazon-rds runs without huge pages: only root can reserve them, and the plan has none"]
    medium = configured_peers(server_of(18), replace(facts, memory_bytes=4 * GB), clients=4).settings
    assert "huge_pages" not in medium["amazon-rds"]


def test_without_a_host_layer_there_is_nothing_to_tell_apart() -> None:
    assert on_equal_terms(BASE, Plan((WORK_MEM, BUILD), (), (), None), server_of(18), {"pgtune": {}}) == []


def test_servers_with_the_largest_share_fill_what_interleaved_servers_may_have() -> None:
    memory_bytes = memory_for_each(20 * GB, 11)
    assert memory_bytes == 3904 * MB  # 0.7 × 20 GB / 11 × 3 = 3909 MB, in steps of 64 MB
    assert 11 * memory_bytes / 3 <= MEMORY_SHARE * 20 * GB


def test_every_peer_is_configured_and_says_where_its_rule_is_from() -> None:
    found = configured_peers(server_of(18), PeerFacts(4 * GB, 2, 18, "ssd"), clients=4)
    assert list(found.settings) == list(load())
    assert found.settings["pgtune"]["shared_buffers"] == "1GB"
    assert "pgtune: pgtune, OLTP (le0pard/pgtune at 7caef27, 2026-07-30)" in found.notes
    assert (
        "pgconfig without listen_addresses = *: scratch servers are accessible only through a private socket"
        in found.notes
    )
    assert any(note.startswith("pg-configurator without its monitoring settings") for note in found.notes)
    assert not any("max_connections =" in note for note in found.notes)


def test_tools_that_know_data_warehouses_are_asked_for_them_and_that_is_said() -> None:
    facts = PeerFacts(24 * GB, 2, 18, "ssd")
    usual = configured_peers(server_of(18), facts, clients=4)
    found = configured_peers(server_of(18), replace(facts, purpose=Purpose.WAREHOUSE), clients=4)
    changed = {name for name, settings in found.settings.items() if settings != usual.settings[name]}
    assert changed == {"pg-configurator", "pgconfig", "pgtune"}
    assert found.settings["pgtune"]["max_wal_size"] == "16GB"
    assert found.settings["pgconfig"]["work_mem"] == "123MB"
    assert found.notes[0] == (
        "configured for data warehouses: pg-configurator (statistic without replicas), pgconfig (DW), pgtune "
        "(DW); amazon-rds, azure-flexible, cloud-sql, timescaledb-tune have the same configuration for all "
        "kinds of load"
    )
    assert "pgtune: pgtune, DW (le0pard/pgtune at 7caef27, 2026-07-30)" in found.notes
    assert not any(note.startswith("configured for") for note in usual.notes)


def test_connections_are_raised_for_the_load_and_that_is_said() -> None:
    found = configured_peers(server_of(18), PeerFacts(4 * GB, 2, 18, "ssd"), clients=32)
    assert found.settings["pg-configurator"]["max_connections"] == "46"  # 32 + 10 + 3 + 1
    assert "pg-configurator with max_connections = 46 instead of 25: required by the load" in found.notes


def test_a_peer_without_an_answer_is_named_with_its_reason() -> None:
    found = configured_peers(server_of(18), PeerFacts(900 * MB, 2, 18, "ssd"), clients=4)
    assert "pg-configurator" not in found.settings
    (note,) = (one for one in found.notes if "is not compared" in one)
    assert note.startswith(
        "pg-configurator (pg-configurator, OLTP without replicas) is not compared: it requires"
    )


@pytest.mark.usefixtures("own_home")
def test_what_is_resumed_is_made_for_the_memory_that_it_records_unless_another_is_stated() -> None:
    with closing(open_store()) as store:
        store.save(experiment())
    resumed = _as_recorded(Sizing(), experiment().id)
    assert resumed.of(MEMORY) == 3328 * MB
    stated = Sizing(given={"memory": ("2GB",)})
    assert _as_recorded(stated, experiment().id) == stated
    assert _as_recorded(Sizing(), None) == Sizing()
