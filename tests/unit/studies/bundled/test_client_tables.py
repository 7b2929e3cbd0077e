"""Tables of each client's own, beside those that all share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.load.driver import job_options, workload_options
from pgdyno.measure.bundled_study import BundledStudy, Machine, Sizing
from pgdyno.model.experiments.workload import Cell
from pgdyno.studies.bundled import clients, loop
from pgdyno.workload.bundled import load as bundled_workloads

GB = 1 << 30
KNOWN = bundled_workloads()


def sizing(study: BundledStudy, *tables: str, cpus: int = 2, names: tuple[str, ...] = ()) -> Sizing:
    loads = tuple(KNOWN[name] for name in names or study.measures)
    return Sizing({"tables": tables} if tables else {}, machine=Machine(cpus, 24 * GB), loads=loads)


def test_tables_are_shared_unless_own_ones_are_requested() -> None:
    for study in (clients, loop):
        usual = study.workloads(sizing(study.STUDY))
        assert usual == study.workloads(sizing(study.STUDY, "shared"))
        assert {cell.data_set.schemas for cell in usual.values()} == {0}


def test_clients_are_measured_on_both_kinds_of_tables_side_by_side() -> None:
    cells = clients.workloads(sizing(clients.STUDY, "shared,own"))
    assert len(cells) == 2 * 2 * 8
    assert cells["pgbench-select-3"].cell == Cell("pgbench-select", 620_000_000, 3)
    own = cells["pgbench-select-own-3"]
    assert own.cell == Cell("pgbench-select, 8 own tables", 620_000_000, 3)
    assert (own.driver_name, own.generators, own.clients) == ("pgbench-select", ("driver",), 3)


def test_there_is_a_schema_for_each_of_the_most_clients_and_rows_as_of_the_shared_tables() -> None:
    """Of scale 40 by hand: 8 clients have 5 each; 24 need 1.7, and have 2 each, together 48."""
    for cpus, count, each in ((2, 8, 5), (6, 24, 2)):
        cells = clients.workloads(sizing(clients.STUDY, "own", cpus=cpus)).values()
        (data_set,) = {cell.data_set.key: cell.data_set for cell in cells}.values()
        assert (data_set.schemas, data_set.scale) == (count, count * each)
        assert workload_options(data_set) == {"scale": each, "schemas": count}
        assert data_set.key == f"pgbench-schemas{count}-{count * each}"


def test_own_tables_that_are_large_get_the_shared_buffers_for_them() -> None:
    """256 clients of one unit of scale each have 3,968 MB (3,784 MiB); a tenth more is 4,163 MiB."""
    assert clients.settings(sizing(clients.STUDY, "own", cpus=64))["shared_buffers"] == "4163MB"
    for usual in (sizing(clients.STUDY, "own"), sizing(clients.STUDY, cpus=64)):
        assert clients.settings(usual)["shared_buffers"] == "1GB"


def test_writers_on_own_tables_keep_the_balances_of_every_client() -> None:
    own = clients.workloads(sizing(clients.STUDY, "own"))["pgbench-tpcb-own-1"]
    assert own.invariant is not None
    for number in range(1, 9):
        assert f"FROM client_{number}.pgbench_accounts" in own.invariant
        assert f"FROM client_{number}.pgbench_branches" in own.invariant
    assert "client_9" not in own.invariant
    assert " pgbench_" not in own.invariant


def test_the_loop_runs_the_same_functions_on_own_tables() -> None:
    cells = loop.workloads(sizing(loop.STUDY, "shared", "own"))
    assert len(cells) == 2 * (3 * 4 + 2)
    own = cells["c-loop-own-2"]
    assert own.cell == Cell("C loop, 4 own tables", 620_000_000, 2, executions=10_000)
    assert own.statement == cells["c-loop-2"].statement
    assert job_options(cells["client-own-2"]) == {"scale": 10, "schemas": 4}
    assert all(cell.data_set.has_loops for cell in cells.values())


def test_a_workload_whose_tables_have_one_place_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        clients.workloads(sizing(clients.STUDY, "own", names=("sysbench-read-only",)))
    assert caught.value.message == "sysbench-read-only cannot run on separate tables per client"
    assert caught.value.hint == "leave out --tables own, or choose one of pgbench's workloads"


def test_tables_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        loop.workloads(sizing(loop.STUDY, "shared,mine"))
    assert (caught.value.message, caught.value.hint) == ('no tables "mine"', "choose shared or own, or both")


def test_what_was_requested_is_recorded() -> None:
    asked = replace(sizing(loop.STUDY, "shared", "own"), chosen=("pgbench-aggregate",))
    assert loop.STUDY.grid_options(asked) == {"tables": "shared,own", "workload": "pgbench-aggregate"}
