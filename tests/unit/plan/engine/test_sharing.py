"""Which of the kernel's files arms that take turns can each have their own value of."""

from __future__ import annotations

from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import SideBySide, not_shareable, side_by_side

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SHMEM = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
SWAPPINESS = "/proc/sys/vm/swappiness"
REGISTER = "/dev/cpu/0/msr:0x1a4"


def files(*variants: dict[str, str]) -> tuple[str, ...]:
    return not_shareable([Variant(f"v{number}", settings) for number, settings in enumerate(variants)])


def test_what_counts_at_once_is_switched_with_the_turns() -> None:
    assert files({THP: "never"}, {THP: "always"}, {SHMEM: "always"}, {REGISTER: "1"}) == ()


def test_what_has_an_effect_later_takes_whole_trials() -> None:
    assert files({}, {SWAPPINESS: "1", THP: "always"}) == (SWAPPINESS,)


def test_what_all_want_alike_is_no_difference() -> None:
    assert files({SWAPPINESS: "1"}, {SWAPPINESS: "1", THP: "always"}) == ()


def test_a_pool_is_shared_where_each_server_takes_exactly_its_own() -> None:
    assert files({"huge_pages": "off", POOL: "0"}, {"huge_pages": "on", POOL: "500"}) == ()


def test_a_pool_that_all_ask_for_is_shared_only_by_servers_that_insist_on_their_pages() -> None:
    assert files({"huge_pages": "on", POOL: "600"}, {"huge_pages": "on", POOL: "600"}) == ()
    assert files({POOL: "600", "jit": "on"}, {POOL: "600", "jit": "off"}) == (POOL,)


def test_one_variant_alone_shares_with_nobody() -> None:
    assert files({POOL: "600", SWAPPINESS: "1"}) == ()


def test_a_server_that_takes_what_it_finds_would_take_the_others_pages() -> None:
    assert files({"huge_pages": "off"}, {"huge_pages": "on", POOL: "5"}, {"huge_pages": "try"}) == (POOL,)
    assert files({}, {"huge_pages": "on", POOL: "500"}) == (POOL,)
    assert files({"huge_pages": "on"}, {"huge_pages": "on", POOL: "500"}) == (POOL,)


def test_servers_that_differ_in_their_build_alone_take_equal_shares_of_a_pool() -> None:
    found = Variant("found", {POOL: "600", SWAPPINESS: "1"})
    built = Variant("built", {POOL: "600", SWAPPINESS: "1"}, server="built")
    assert not_shareable([found, built]) == ()
    assert not_shareable([Variant("default"), found, built]) == (POOL, SWAPPINESS)


DEFAULT = Variant("default", {"work_mem": "4MB"})


def test_variants_that_can_take_turns_stay_as_they_are() -> None:
    plan = Variant("plan", {"work_mem": "8MB"}, server="built")
    assert side_by_side([DEFAULT, plan]) == SideBySide((DEFAULT, plan), ())


def test_each_server_takes_all_of_its_share_of_a_pool_or_none() -> None:
    plan = Variant("plan", {"huge_pages": "try", POOL: "600"})
    found = side_by_side([DEFAULT, plan])
    assert [variant.settings for variant in found.variants] == [
        {"work_mem": "4MB", "huge_pages": "off"},
        {"huge_pages": "on", POOL: "600"},
    ]
    assert found.as_found == ()
    assert not_shareable(found.variants) == ()


def test_what_the_machine_has_one_of_is_left_as_found_and_named() -> None:
    plan = Variant("plan", {"work_mem": "8MB", SWAPPINESS: "1", POOL: "600"})
    without = Variant("without-system", {"work_mem": "8MB"})
    found = side_by_side([DEFAULT, plan, without])
    assert [variant.files.get(SWAPPINESS) for variant in found.variants] == [None, None, None]
    assert [variant.files.get(POOL) for variant in found.variants] == [None, "600", None]
    assert [variant.gucs["huge_pages"] for variant in found.variants] == ["off", "on", "off"]
    assert found.as_found == (SWAPPINESS,)
    assert found.notes == (
        "not measured, and left as found, because the machine has one value for all servers: vm.swappiness",
    )
    assert not_shareable(found.variants) == ()


def test_what_every_variant_asks_for_is_no_difference_and_stays() -> None:
    one, other = Variant("a", {SWAPPINESS: "1"}), Variant("b", {SWAPPINESS: "1", "work_mem": "8MB"})
    assert side_by_side([one, other]).variants == (one, other)


def test_what_takes_the_kernel_half_a_turn_to_switch_is_left_as_found_too() -> None:
    scheduler = "/sys/block/sda/queue/scheduler"
    plan = Variant("plan", {scheduler: "none", "/sys/kernel/mm/transparent_hugepage/enabled": "madvise"})
    found = side_by_side([DEFAULT, plan])
    assert found.as_found == (scheduler,)
    assert [variant.files.get(scheduler) for variant in found.variants] == [None, None]
