"""Which of the kernel's files arms that take turns can each have their own value of."""

from __future__ import annotations

from pgdyno.levers.sharing import not_shareable
from pgdyno.model.variant import Variant

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
