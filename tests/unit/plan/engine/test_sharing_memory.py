"""Servers that do not fit into memory beside each other have smaller shared_buffers, and pools for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import Memory, with_pools_for, with_smaller_buffers

GB, MB = 1 << 30, 1 << 20
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

DEFAULT = Variant("default")
PLAN = Variant("plan", {"shared_buffers": "6016MB", POOL: "3107", "work_mem": "24MB"})
WITHOUT_APPLICATION = Variant("without-application", {POOL: "3107"})
WITHOUT_SYSTEM = Variant("without-system", {"shared_buffers": "6016MB"})
VARIANTS = (DEFAULT, PLAN, WITHOUT_APPLICATION, WITHOUT_SYSTEM)


def buffers(variant: Variant) -> int:
    return int(variant.gucs.get("shared_buffers", "128MB").removesuffix("MB")) * MB


MEMORY = Memory(16 * GB, 615 * MB, size_of=lambda one: int(buffers(one) * 1.03) + 10 * MB, buffers_of=buffers)


WITH_POOLS = (DEFAULT, PLAN, replace(WITHOUT_APPLICATION, settings={POOL: "163"}), WITHOUT_SYSTEM)


def test_what_fits_stays_as_it_is_but_for_a_pool_that_its_server_does_not_need() -> None:
    # 2 × 6.2 GB and little more fit into 70 % of 40 GB.
    assert with_smaller_buffers(VARIANTS, PLAN, replace(MEMORY, available_bytes=40 * GB)) == WITH_POOLS


def test_all_have_as_much_as_fits_in_steps_of_64_mb() -> None:
    # 0.95 × 0.7 × 16 GB = 10895 MB, of which the default takes 142 MB. The plan with B takes pages of
    # 3107 - (6016 - B) / 2 MB, that is B + 198 MB; without its system layer 1.03 B + 10 MB; without its
    # settings 3107 - (6016 - 128) / 2 MB = 163 pages, 326 MB. So 2.03 B <= 10219 MB, and B <= 5034 MB.
    found = with_smaller_buffers(VARIANTS, PLAN, MEMORY)
    assert [one.settings for one in found] == [
        {},
        {"shared_buffers": "4992MB", POOL: str(3107 - 512), "work_mem": "24MB"},
        {POOL: "163"},
        {"shared_buffers": "4992MB"},
    ]
    assert [one.name for one in found] == [one.name for one in VARIANTS]


def test_a_pool_still_holds_all_of_its_servers_memory() -> None:
    for available_bytes in range(6 * GB, 30 * GB, GB):
        for one in with_smaller_buffers(VARIANTS, PLAN, replace(MEMORY, available_bytes=available_bytes)):
            assert int(one.files.get(POOL, "9999")) * 2 * MB >= MEMORY.size_of(one)


@pytest.mark.parametrize(("data_bytes", "is_smaller"), [(2400 * MB, True), (2500 * MB, False)])
def test_data_that_would_not_fit_twice_keeps_the_plans_size(data_bytes: int, *, is_smaller: bool) -> None:
    found = with_smaller_buffers(VARIANTS, PLAN, replace(MEMORY, data_bytes=data_bytes))
    assert (found != WITH_POOLS) == is_smaller


def test_only_what_is_above_becomes_smaller() -> None:
    some = replace(DEFAULT, name="some", settings={"shared_buffers": "1024MB"})
    found = with_smaller_buffers((*VARIANTS, some), PLAN, MEMORY)
    assert found[-1] == some
    assert buffers(found[1]) < 6016 * MB


def test_a_baseline_with_more_than_the_plan_takes_nothing_off_the_plans_pool() -> None:
    found = Variant("as-found", {"shared_buffers": "8192MB"})
    without = Variant("without-application", {"shared_buffers": "8192MB", POOL: "3107"})
    smaller = with_smaller_buffers((found, PLAN, without), PLAN, MEMORY)
    assert [buffers(one) // MB for one in smaller] == [3456, 3456, 3456]
    # 1.03 B + 10 MB without a pool, and B + 198 MB twice, as above: 3.03 B <= 10489 MB. The plan's pool loses
    # (6016 - 3456) / 2 = 1280 pages; 3456 × 1.03 + 10 MB take 1785 of what is left.
    assert [one.files.get(POOL) for one in smaller] == [None, "1827", "1827"]
    large = with_smaller_buffers((found, PLAN, without), PLAN, replace(MEMORY, available_bytes=35 * GB))
    for one in large[1:]:
        assert int(one.files[POOL]) * 2 * MB >= MEMORY.size_of(one)


def test_a_pool_is_as_large_as_its_servers_shared_memory() -> None:
    assert with_pools_for(PLAN, 6300 * MB).settings[POOL] == "3150"
    assert with_pools_for(PLAN, 101 * MB).settings[POOL] == "51"
    assert with_pools_for(PLAN, 0) == PLAN
    assert with_pools_for(DEFAULT, 6300 * MB) == DEFAULT
