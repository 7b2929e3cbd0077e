"""What ``pgdyno run huge-pages`` compares, by what can be had, and what of it fits into a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.measure.bundled_study import Machine, PageSupport, Pool, Sizing, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Cell
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import huge_pages
from pgdyno.studies.bundled.huge_pages import client_counts, grid_of
from pgdyno.workload.bundled import load as bundled_workloads

MB, GB = 1 << 20, 1 << 30
SMALL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
LARGE = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
THP, SHMEM = huge_pages.PRIVATE, huge_pages.SHARED
CHOICES = {THP: ("always", "madvise", "never"), SHMEM: ("always", "within_size", "never")}
POOLS = {2 * MB: Pool(SMALL, 0, 570), GB: Pool(LARGE, 1, 3)}
LOADS = tuple(bundled_workloads()[name] for name in huge_pages.STUDY.measures)
SIZING = Sizing(machine=Machine(2, 24 * GB), loads=LOADS, rounds=5)


def study(pages: PageSupport, sizing: Sizing = SIZING) -> Study:
    context = StudyContext(
        Variant("default", {"shared_buffers": "1GB"}),
        tuple(huge_pages.workloads(sizing)),
        huge_pages.STUDY.design,
        sizing=sizing,
        pages=pages,
    )
    return huge_pages.study(context)


def test_every_kind_of_page_is_an_arm_and_leaves_the_others_none() -> None:
    never = {THP: "never", SHMEM: "never"}
    small = {"shared_buffers": "1GB", "huge_pages": "off", SMALL: "0", LARGE: "1", **never}
    found = study(PageSupport(POOLS, CHOICES))
    assert found.baseline == "4kB"
    assert {variant.name: variant.settings for variant in found.variants} == {
        "4kB": small,
        "thp-shared": {**small, SHMEM: "always"},
        "thp-private": {**small, THP: "always"},
        "2MB": {**small, "huge_pages": "on", "huge_page_size": "2048kB", SMALL: "570"},
        "1GB": {**small, "huge_pages": "on", "huge_page_size": "1048576kB", LARGE: "3"},
    }
    (note,) = found.notes
    assert "long-lived connections" in note


def test_what_cannot_be_had_is_left_out_with_the_reason() -> None:
    scattered = replace(POOLS[GB], obstacle="only 1 of 3 huge pages could be reserved (scattered)")
    found = study(PageSupport({**POOLS, GB: scattered}, {THP: CHOICES[THP]}))
    assert [variant.name for variant in found.variants] == ["4kB", "thp-private", "2MB"]
    assert all(LARGE not in variant.settings for variant in found.variants)
    assert found.notes[:-1] == (
        "pages of 1GB are left out: only 1 of 3 huge pages could be reserved (scattered)",
        f"transparent huge pages for shared memory are left out: this kernel has no {SHMEM}",
    )


def test_a_kernel_without_pools_has_none_of_2_mb_and_of_1_gb() -> None:
    found = study(PageSupport({}, CHOICES))
    assert [variant.name for variant in found.variants] == ["4kB", "thp-shared", "thp-private"]
    assert found.notes[:-1] == (
        "pages of 2MB are left out: this kernel does not support them on this CPU",
        "pages of 1GB are left out: this kernel does not support them on this CPU",
    )


def test_without_any_huge_pages_there_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError) as caught:
        study(PageSupport({}, {}))
    assert caught.value.message == "huge pages are not available here"
    assert "pages of 2MB are left out: this kernel does not support them" in (caught.value.detail or "")


def test_the_grid_is_scaled_to_the_machine() -> None:
    # 0.7 × 24 GB for five servers with data twice as large as their buffers: 1.12 GB, in steps of 128 MB.
    grid = grid_of(SIZING)
    assert grid.settings["shared_buffers"] == "1024MB"
    cells = {cell.name: cell.cell for cell in grid.cells}
    assert len(cells) == 2 * 3 * 5
    # 1024 MB at 15.5 MB per unit of scale: 69 units
    assert cells["tpcb-1024MB-16"] == Cell("pgbench-tpcb", 69 * 15_500_000, 16)
    assert {name.split("-")[1] for name in cells} == {"512MB", "1024MB", "2048MB"}
    assert {cell.clients for cell in cells.values() if cell} == {1, 2, 4, 8, 16}
    assert grid.left_out == ()


@pytest.mark.parametrize(("cpus", "counts"), [(1, (1, 2, 4, 8)), (3, (1, 2, 4, 8, 16, 24))])
def test_clients_go_up_to_eight_for_each_cpu(cpus: int, counts: tuple[int, ...]) -> None:
    assert client_counts(Machine(cpus, 0)) == counts


def test_one_number_of_clients_may_be_asked_for() -> None:
    assert {cell.clients for cell in grid_of(replace(SIZING, clients=3)).cells} == {3}


def test_many_clients_need_connections() -> None:
    assert grid_of(replace(SIZING, clients=400)).settings["max_connections"] == "420"


def test_a_budget_keeps_the_cells_that_say_most_and_names_the_others() -> None:
    sizing = replace(SIZING, budget_s=15 * 60.0)
    grid = grid_of(sizing)
    # A cell takes 29.5 s; five servers 5, 11 and 22 s to start on 0.5, 1 and 2 GB, twice as long to copy.
    # A round of the selects and the smallest tpcb takes 4 × 29.5 + 38 + 11 = 167 s of 180; one more adds 51.
    assert [cell.name for cell in grid.cells] == [
        "select-512MB-16", "select-1024MB-16", "select-2048MB-16", "tpcb-512MB-16",
    ]  # fmt: skip
    note, _ = study(PageSupport(POOLS, CHOICES), sizing).notes
    assert note.startswith("left out because of the budget of 15 minutes: tpcb-1024MB-16, tpcb-2048MB-16, ")
    assert len(grid.cells) + len(grid.left_out) == 30


def test_the_smallest_budget_has_one_cell() -> None:
    assert len(grid_of(replace(SIZING, budget_s=1.0)).cells) == 1


def test_the_published_settings_and_sizes() -> None:
    sizing = replace(SIZING, given={"preset": ("published",)}, machine=Machine(56, 256 * GB))
    grid = grid_of(sizing)
    assert grid.settings["shared_buffers"] == "65536MB"
    assert grid.settings["wal_compression"] == "on"
    assert {cell.name.split("-")[1] for cell in grid.cells} == {"49152MB", "98304MB"}
    note, _ = study(PageSupport(POOLS, CHOICES), sizing).notes
    assert "published for PostgreSQL 11 in 2018" in note


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        grid_of(replace(SIZING, given={"preset": ("large",)}))
    assert str(caught.value) == (
        'the study huge-pages has no preset "large"\nHINT:  choose scaled or published'
    )


def test_a_small_machine_is_told_what_does_not_fit() -> None:
    with pytest.raises(MemoryProofError) as caught:
        grid_of(replace(SIZING, machine=Machine(2, 2 * GB)))
    assert caught.value.message == "not enough free memory for the servers of this study"
    assert "2\xa0GB" in (caught.value.detail or "")
