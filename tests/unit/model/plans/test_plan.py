"""A plan reduced to layers, levers or keys, and its values by the kind of change."""

from __future__ import annotations

import pytest

from pgdyno.model.plans.plan import (
    HUGE_PAGES,
    KERNEL,
    MSR,
    PROCESS,
    PROGRAM_LINK,
    SERVER,
    SETTING,
    Change,
    Effect,
    Layer,
    MemoryItem,
    MemoryProof,
    Plan,
    PlanLine,
    Risk,
    applied_of,
    kind_of,
    left_out_per_application,
    without_per_application,
)

SWAPPINESS = "/proc/sys/vm/swappiness"


def line(lever: str, kind: str, key: str, layer: Layer, effect: Effect = Effect.RELOAD) -> PlanLine:
    return PlanLine(Change(lever, kind, key, None, f"{key}!", effect), layer, "", "", Risk.SAFE, "")


PLAN = Plan(
    (
        line("wal", SETTING, "max_wal_size", Layer.APPLICATION),
        line("swappiness", KERNEL, SWAPPINESS, Layer.SYSTEM, Effect.IMMEDIATE),
        line("batch", PROCESS, "sched", Layer.SYSTEM, Effect.RESTART),
        line("build", SERVER, "server", Layer.COMPILER, Effect.RESTART),
        line("switch", PROGRAM_LINK, "/usr/lib/postgresql", Layer.COMPILER, Effect.RESTART),
    ),
    (),
    (),
    None,
)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (SWAPPINESS, KERNEL),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", HUGE_PAGES),
        ("/dev/cpu/0/msr:0x1a4", MSR),
    ],
)
def test_kinds_follow_from_the_file(key: str, kind: str) -> None:
    assert kind_of(key) == kind


def test_values_are_those_of_variants_and_a_build_is_none_of_them() -> None:
    assert PLAN.values == {"max_wal_size": "max_wal_size!", SWAPPINESS: f"{SWAPPINESS}!", "sched": "sched!"}
    assert PLAN.settings == {"max_wal_size": "max_wal_size!"}
    assert PLAN.server == "server!"
    assert [one.key for one in PLAN.host_changes] == [SWAPPINESS]
    assert [one.key for one in PLAN.programs] == ["/usr/lib/postgresql"]


def test_a_part_of_a_plan_has_its_own_layers_and_need_of_a_restart() -> None:
    assert PLAN.layers == (Layer.APPLICATION, Layer.SYSTEM, Layer.COMPILER)
    assert PLAN.needs_restart
    reduced = PLAN.of_layers([Layer.APPLICATION, Layer.SYSTEM]).without("batch")
    assert reduced.layers == (Layer.APPLICATION, Layer.SYSTEM)
    assert not reduced.needs_restart
    assert reduced.server is None
    assert reduced.without_keys([SWAPPINESS]).values == PLAN.settings


def test_the_proof_is_the_sum_of_its_items_as_a_share_of_the_limit() -> None:
    proof = MemoryProof((MemoryItem("a", "", 300), MemoryItem("b", "", 100)), 1000, "/proc/meminfo")
    assert (proof.total_bytes, proof.share) == (400, 0.4)


def test_what_suits_one_application_only_is_in_the_name_of_the_plan_without_it() -> None:
    name = without_per_application(["plan_cache_mode"])
    assert name == "without-plan_cache_mode"
    assert left_out_per_application(name) == ("plan_cache_mode",)
    assert left_out_per_application("without-huge_pages") == ()
    assert left_out_per_application("plan_cache_mode") == ()


def test_the_plan_without_it_is_applied_where_it_was_measured() -> None:
    assert applied_of(["default", "plan"]) == "plan"
    assert applied_of(["default", "plan", "without-plan_cache_mode"]) == "without-plan_cache_mode"
