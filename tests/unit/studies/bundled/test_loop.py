"""What ``pgdyno run loop`` measures."""

from __future__ import annotations

import pytest

from pgdyno.measure.bundled_study import Machine, Sizing, StudyContext
from pgdyno.model.experiments.workload import Cell, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import loop
from pgdyno.workload.bundled import load as bundled_workloads

GB = 1 << 30
BYTES = 620_000_000


def sizing(cpus: int, most: int | None = None, names: tuple[str, ...] = loop.STUDY.measures) -> Sizing:
    loads = tuple(bundled_workloads()[name] for name in names)
    return Sizing(machine=Machine(cpus, 24 * GB), loads=loads, clients=most)


def _sql(cell: Workload) -> str:
    assert cell.statement is not None
    return cell.statement.sql


@pytest.mark.parametrize(
    ("cpus", "most", "expected"),
    [
        (1, None, (1, 2, 3, 4)),
        (2, None, (1, 2, 3, 4)),
        (8, None, (1, 2, 3, 4, 6, 8, 12, 16)),
        (8, 14, (1, 2, 3, 4, 6, 8, 12, 14)),
        (8, 1, (1,)),
        (20, None, (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40)),  # a session for each CPU is among them
        (20, 10, (1, 2, 3, 4, 6, 8, 10)),
    ],
)
def test_clients_double_and_a_half_up_to_two_per_cpu(
    cpus: int, most: int | None, expected: tuple[int, ...]
) -> None:
    assert loop.client_counts(sizing(cpus, most)) == expected


def test_three_loads_ask_the_same_at_every_number_of_clients_and_two_at_one() -> None:
    cells = loop.workloads(sizing(2))
    assert len(cells) == 3 * 4 + 2
    assert cells["client-3"].cell == Cell("client", BYTES, 3)
    assert cells["c-loop-3"].cell == Cell("C loop", BYTES, 3, executions=10_000)
    assert cells["plpgsql-loop-4"].cell == Cell("PL/pgSQL loop", BYTES, 4, executions=10_000)
    assert cells["empty-loop-1"].cell == Cell("empty loop", BYTES, 1, executions=10_000_000)
    assert cells["one-query-1"].cell == Cell("one query", BYTES, 1, executions=10_000)


def test_all_read_one_copy_of_the_data_whose_servers_have_the_functions() -> None:
    cells = loop.workloads(sizing(2)).values()
    assert len({cell.data_set.key for cell in cells}) == 1
    assert all(cell.data_set.has_loops and cell.is_read_only for cell in cells)


def test_clients_issue_pgbenchs_own_script_and_loops_call_the_functions_as_often_as_they_count() -> None:
    cells = loop.workloads(sizing(2))
    assert (cells["client-1"].driver_name, cells["client-1"].statement) == ("pgbench-select", None)
    assert _sql(cells["c-loop-1"]) == "SELECT executions FROM pgdyno_loop.exec_query_in_loop(10000)"
    assert (
        _sql(cells["plpgsql-loop-1"])
        == "SELECT executions FROM pgdyno_loop.exec_query_in_loop_plpgsql(10000)"
    )
    assert _sql(cells["empty-loop-1"]) == "SELECT executions FROM pgdyno_loop.empty_loop(10000000)"
    assert "pgdyno_loop.loop_keys(10000," in _sql(cells["one-query-1"])


def test_sums_are_issued_by_clients_and_by_functions_of_their_own() -> None:
    cells = loop.workloads(sizing(2, names=("pgbench-aggregate",)))
    assert len(cells) == 3 * 4 + 2
    assert cells["client-aggregate-3"].cell == Cell("client, aggregate", BYTES, 3)
    assert cells["client-aggregate-3"].driver_name == "pgbench-aggregate"
    assert cells["plpgsql-loop-aggregate-4"].cell == Cell(
        "PL/pgSQL loop, aggregate", BYTES, 4, executions=200
    )
    assert _sql(cells["c-loop-aggregate-1"]) == (
        "SELECT executions FROM pgdyno_loop.exec_aggregate_in_loop(200)"
    )
    assert _sql(cells["plpgsql-loop-aggregate-1"]) == (
        "SELECT executions FROM pgdyno_loop.exec_aggregate_in_loop_plpgsql(200)"
    )
    one = _sql(cells["one-query-aggregate-1"])
    assert "loop_keys(200, (SELECT max(aid) - 999 FROM pgbench_accounts))" in one
    assert "WHERE aid >= key ORDER BY aid LIMIT 1000" in one


def test_rows_and_sums_can_be_measured_beside_each_other() -> None:
    cells = loop.workloads(sizing(2, names=loop.STUDY.loads))
    assert len(cells) == 2 * (3 * 4 + 2)
    assert {"client-1", "client-aggregate-1"} <= cells.keys()


def test_every_call_in_the_server_draws_other_keys() -> None:
    cells = loop.workloads(sizing(2)).values()
    seeds = {cell.session_settings.get("pgdyno_loop.seed") for cell in cells if cell.statement}
    assert seeds == {"0"}


def test_one_variant_is_measured_with_room_for_all_connections() -> None:
    names = tuple(loop.workloads(sizing(64)))
    context = StudyContext(Variant("default"), names, loop.STUDY.design, sizing=sizing(64))
    assert [variant.name for variant in loop.study(context).variants] == ["default"]
    assert loop.settings(sizing(64))["max_connections"] == "148"  # 2 × 64 and 20
    assert loop.settings(sizing(2))["max_connections"] == "100"
