"""Pools of huge pages for a study: how many pages, and whether the kernel has room for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from pgdyno.apply.host_state import HostState
from pgdyno.base.errors import HugePagesError
from pgdyno.host.host import HugePagePool
from pgdyno.measure.bundled_study import Pool
from pgdyno.studies import run

KB, GB = 1 << 10, 1 << 30
LARGE = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
SMALL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


@dataclass
class Kernel:
    """A host whose kernel has no room for more than some pages of a size."""

    room: Mapping[str, int]
    held: list[dict[str, str]] = field(default_factory=list)

    def check(self, wanted: Mapping[str, str]) -> None:
        assert set(wanted) <= {LARGE, SMALL}

    @contextmanager
    def holding(self, wanted: dict[str, str]) -> Iterator[None]:
        for path, pages in wanted.items():
            if int(pages) > self.room[path]:
                raise HugePagesError(f"there is no room for {pages} pages", detail=path)
        self.held.append(wanted)
        yield


def tried(room: Mapping[str, int]) -> tuple[dict[int, Pool], Kernel]:
    kernel = Kernel(room)
    pools = {2048 * KB: Pool(SMALL, 0, 900), GB: Pool(LARGE, 0, 2)}
    return run._tried(cast("HostState", kernel), pools), kernel


def test_pages_in_use_are_not_free_for_a_server() -> None:
    found = HugePagePool(total=100, free=30, reserved=10, surplus=5)
    assert run._pool(2048 * KB, found, needed=50) == Pool(SMALL, 95, 130)


def test_a_pool_that_is_large_enough_stays_as_it_is() -> None:
    found = HugePagePool(total=100, free=100, reserved=0, surplus=0)
    assert run._pool(GB, found, needed=4) == Pool(LARGE, 100, 100)


def test_all_pools_are_tried_together_the_largest_pages_first() -> None:
    pools, kernel = tried({LARGE: 2, SMALL: 900})
    assert [one.obstacle for one in pools.values()] == [None, None]
    assert kernel.held == [{LARGE: "2"}, {LARGE: "2", SMALL: "900"}]


def test_a_pool_without_room_is_left_out_of_the_next_attempt_and_says_why() -> None:
    pools, kernel = tried({LARGE: 1, SMALL: 900})
    assert pools[GB].obstacle == f"there is no room for 2 pages ({LARGE})"
    assert pools[2048 * KB].obstacle is None
    assert kernel.held == [{SMALL: "900"}]
