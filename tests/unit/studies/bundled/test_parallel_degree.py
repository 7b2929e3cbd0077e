"""What ``pgdyno run parallel-degree`` measures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.load.driver import workload_options
from pgdyno.measure.bundled_study import Machine, Sizing, StudyContext
from pgdyno.model.experiments.workload import Cell, Statement, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import parallel_degree as study_file

GB = 1 << 30
SIZING = Sizing(machine=Machine(2, 20 * GB))


def _statement(cell: Workload) -> Statement:
    assert cell.statement is not None
    return cell.statement


@pytest.mark.parametrize(("cpus", "most"), [(1, 4), (2, 4), (8, 16), (32, 64)])
def test_workers_go_up_to_two_per_cpu(cpus: int, most: int) -> None:
    assert study_file.degrees(Machine(cpus, GB)) == tuple(range(most + 1))


def test_each_query_runs_at_every_degree_alone_and_with_others() -> None:
    cells = study_file.workloads(SIZING)
    assert len(cells) == 2 * 2 * 5
    alone, beside = cells["bitand-3"], cells["bitand-3-by-2"]
    assert alone.cell == Cell("bitand", 4_000 * 60_236, 1, 3)
    assert beside.cell == Cell("bitand, 2 clients at once", 4_000 * 60_236, 2, 3)
    assert alone.session_settings["max_parallel_workers_per_gather"] == "3"
    assert alone.session_settings["default_transaction_read_only"] == "on"
    assert len({cell.data_set.key for cell in cells.values()}) == 1


def test_partition_wise_is_the_same_join_on_the_same_rows_in_partitions() -> None:
    cells = study_file.workloads(replace(SIZING, chosen=("hash-join", "partition-wise")))
    whole, parted = cells["hash-join-3"], cells["partition-wise-3"]
    assert (parted.kind, parted.data_set.scale) == (whole.kind, whole.data_set.scale)
    assert workload_options(parted.data_set) == {**workload_options(whole.data_set), "partitions": 8}
    assert parted.data_set.key != whole.data_set.key
    added = parted.session_settings.items() - whole.session_settings.items()
    assert added == {("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on")}


def test_an_index_is_built_by_workers_of_maintenance_on_data_that_are_restored() -> None:
    cells = study_file.workloads(replace(SIZING, chosen=("count", "create-index")))
    build = cells["create-index-3-by-2"]
    assert _statement(build).builds_index
    assert not build.is_read_only
    assert build.session_settings == {
        "client_connection_check_interval": "1s", "max_parallel_maintenance_workers": "3",
    }  # fmt: skip
    assert build.cell == Cell("create-index, 2 clients at once", 4_000 * 60_236, 2, 3)
    assert cells["count-3"].is_read_only
    assert not _statement(cells["count-3"]).builds_index


def test_the_mask_is_as_long_as_the_bit_strings() -> None:
    _, mask, _ = _statement(study_file.workloads(SIZING)["bitand-0"]).sql.split("'", 2)
    assert len(mask) == 200
    assert mask.count("1") == 8


def test_a_query_of_the_users_own_takes_the_place_of_both() -> None:
    cells = study_file.workloads(replace(SIZING, given={"query": ("SELECT 1",)}, clients=1))
    assert list(cells) == [f"query-{workers}" for workers in range(5)]
    assert {_statement(cell).sql for cell in cells.values()} == {"SELECT 1"}


def test_workloads_can_be_chosen_and_a_query_added() -> None:
    cells = study_file.workloads(replace(SIZING, chosen=("sort",), given={"query": ("SELECT 1",)}))
    assert {cell.cell.load for cell in cells.values() if cell.cell} == {
        "sort", "sort, 2 clients at once", "query", "query, 2 clients at once",
    }  # fmt: skip
    asked = replace(SIZING, chosen=("sort", "append"))
    assert study_file.STUDY.grid_options(asked) == {"workload": "sort,append"}


def test_a_query_of_the_users_own_may_write_where_that_is_allowed_and_no_other() -> None:
    query = "CREATE TABLE copied AS TABLE t_bit"
    sizing = replace(SIZING, chosen=("sort",), given={"query": (query,), "writes": ("",)})
    cells = study_file.workloads(sizing)
    writing, reading = cells["query-2"], cells["sort-2"]
    assert (_statement(writing).is_rolled_back, _statement(reading).is_rolled_back) == (True, False)
    assert writing.session_settings["default_transaction_read_only"] == "off"
    assert reading.session_settings["default_transaction_read_only"] == "on"
    again = study_file.STUDY.grid_options(sizing)
    assert again == {"workload": "sort", "query": query, "writes": ""}


def test_there_are_processes_for_all_workers_of_all_clients() -> None:
    settings = study_file.settings(replace(SIZING, machine=Machine(8, 20 * GB)))
    assert settings["max_parallel_workers"] == "128"  # 16 workers of 8 clients
    assert settings["max_worker_processes"] == "136"


def test_presets_say_where_the_data_lie() -> None:
    def buffers(*preset: str) -> str | None:
        return study_file.settings(replace(SIZING, given={"preset": preset})).get("shared_buffers")

    assert buffers() == buffers("shared-buffers") == "317MB"  # 1.1 × 240,944,000 bytes and 64 MB
    assert buffers("page-cache") is None
    cell = study_file.workloads(replace(SIZING, given={"preset": ("disk",)}))["count-1"]
    assert cell.server_memory_bytes == 96_377_600 + (160 << 20)
    with pytest.raises(UsageError) as caught:
        study_file.workloads(replace(SIZING, given={"preset": ("tape",)}))
    assert caught.value.message == 'the study parallel-degree has no preset "tape"'
    assert caught.value.hint == "choose shared-buffers, page-cache, disk"


def test_data_are_as_large_as_memory_has_room_for() -> None:
    (cell, *_) = study_file.workloads(replace(SIZING, machine=Machine(64, GB))).values()
    assert cell.data_set.size_bytes <= 0.2 * GB < cell.data_set.size_bytes + 60_236
    with pytest.raises(MemoryProofError, match="not enough free memory"):
        study_file.workloads(replace(SIZING, machine=Machine(2, 1000)))


def test_one_variant_is_measured() -> None:
    names = tuple(study_file.workloads(SIZING))
    context = StudyContext(Variant("default"), names, study_file.STUDY.design, sizing=SIZING)
    study = study_file.study(context)
    assert [variant.name for variant in study.variants] == ["default"]
    assert study.workloads == names


def test_one_worker_is_left_out_where_the_leaders_part_varies() -> None:
    names = tuple(study_file.workloads(SIZING))
    factors = {"Parallel_Leader_Participation": ["on", "off"]}
    context = StudyContext(Variant("default"), names, study_file.STUDY.design, sizing=SIZING, factors=factors)
    study = study_file.study(context)
    assert len(study.workloads) == 2 * 2 * 4
    assert not {"count-1", "bitand-1-by-2"} & {*study.workloads}
    assert any(note.startswith("one worker alone is left out") for note in study.notes)
    for factors in ({"work_mem": ["4MB"]}, {"parallel_leader_participation": ["on"]}):
        assert study_file.study(replace(context, factors=factors)).workloads == names
    builds = replace(SIZING, chosen=("create-index",))
    context = replace(context, workloads=tuple(study_file.workloads(builds)), sizing=builds)
    assert "create-index-1" in study_file.study(context).workloads


def test_a_query_of_the_users_own_is_told_with_the_figures() -> None:
    assert study_file.query_notes(SIZING) == ()
    given = {"query": ("CREATE TABLE copied AS TABLE t_bit",), "writes": ("",)}
    asked = replace(SIZING, given=given)
    named, rolled_back = study_file.query_notes(asked)
    assert named == "the query: CREATE TABLE copied AS TABLE t_bit"
    assert rolled_back.startswith("each execution was rolled back")


def test_published_figures_are_told_beside_the_queries_that_they_are_of() -> None:
    def notes(**parts: object) -> str:
        sizing = replace(SIZING, **parts)  # type: ignore[arg-type]
        context = StudyContext(Variant("default"), (), study_file.STUDY.design, sizing=sizing)
        return " ".join(study_file.study(context).notes)

    assert "18,505 ms (count)" in notes()
    assert "18,505 ms (count)" in notes(chosen=("bitand", "sort"))
    assert "published for" not in notes(chosen=("create-index",))
    assert "published for" not in notes(given={"query": ("SELECT 1",)})
