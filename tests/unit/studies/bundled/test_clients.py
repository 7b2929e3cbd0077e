"""What ``pgdyno run clients`` measures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.measure.bundled_study import Machine, Sizing, StudyContext
from pgdyno.model.experiments.workload import Cell
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import clients
from pgdyno.workload.bundled import load as bundled_workloads

GB = 1 << 30
LOADS = tuple(bundled_workloads()[name] for name in clients.STUDY.measures)


def sizing(cpus: int, most: int | None = None) -> Sizing:
    return Sizing(machine=Machine(cpus, 24 * GB), loads=LOADS, clients=most)


@pytest.mark.parametrize(
    ("cpus", "most", "expected"), [(1, None, 8), (2, None, 8), (8, None, 32), (8, 14, 14)]
)
def test_clients_go_up_to_four_per_cpu(cpus: int, most: int | None, expected: int) -> None:
    assert clients.client_counts(sizing(cpus, most)) == tuple(range(1, expected + 1))


def test_every_load_is_measured_at_every_number_of_clients_on_the_same_data() -> None:
    cells = clients.workloads(sizing(2))
    assert len(cells) == 16
    assert cells["pgbench-tpcb-6"].cell == Cell("pgbench-tpcb", 620_000_000, 6)
    assert len({one.data_set.key for one in cells.values()}) == 1


def test_every_protocol_that_is_asked_for_has_a_curve_of_its_own() -> None:
    asked = replace(sizing(2), given={"protocol": ("simple", "extended,simple")})
    cells = clients.workloads(asked)
    assert len(cells) == 32
    one = cells["pgbench-select-extended-3"]
    assert (one.cell, one.protocol) == (Cell("pgbench-select, extended", 620_000_000, 3), "extended")
    assert one.issued_as == "pgbench-select"
    assert {cell.protocol for cell in clients.workloads(sizing(2)).values()} == {"prepared"}
    assert clients.STUDY.grid_options(asked)["protocol"] == "simple,extended,simple"


def test_there_is_room_for_all_connections() -> None:
    assert clients.settings(sizing(2))["max_connections"] == "100"
    assert clients.settings(sizing(64))["max_connections"] == "276"


def test_one_variant_is_measured() -> None:
    asked = sizing(2)
    context = StudyContext(
        Variant("default"), tuple(clients.workloads(asked)), clients.STUDY.design, sizing=asked
    )
    study = clients.study(context)
    assert [variant.name for variant in study.variants] == ["default"]
    assert study.workloads[0] == "pgbench-select-1"
