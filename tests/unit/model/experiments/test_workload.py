"""Which workloads share started servers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgdyno.measure.design.schedule import in_random_order, workloads_by_server
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.workload import CapturedLoad, DataSet, ResetPolicy, Workload, usual_clients

READS = Workload("reads", "", DataSet("rows", 1, 100), ResetPolicy.KEEP)
WRITES = replace(READS, name="writes", reset=ResetPolicy.RESTORE)
OTHER = replace(READS, name="other", data_set=DataSet("others", 1, 100))


def names(workloads: list[Workload]) -> list[list[str]]:
    return [[workload.name for workload in group] for group in workloads_by_server(workloads)]


def test_workloads_on_one_data_set_share_a_server_and_writers_come_last() -> None:
    assert names([WRITES, OTHER, READS]) == [["other"], ["reads", "writes"]]


def test_workloads_with_different_limits_on_memory_never_share_a_server() -> None:
    small = replace(READS, name="small", server_memory_bytes=1 << 28)
    smaller = replace(READS, name="smaller", server_memory_bytes=1 << 27)
    small_writes = replace(WRITES, name="small-writes", server_memory_bytes=1 << 28)
    assert names([small, READS, smaller, small_writes]) == [["reads"], ["smaller"], ["small", "small-writes"]]


def test_cells_of_a_grid_are_shuffled_and_readers_still_come_first() -> None:
    cells = [replace(one, name=f"{one.name}-{n}", clients=n) for n in range(1, 9) for one in (WRITES, READS)]
    orders = {tuple(w.name for w in in_random_order(cells, np.random.default_rng(seed))) for seed in range(5)}
    assert len(orders) == 5
    for order in orders:
        assert sorted(order) == sorted(cell.name for cell in cells)
        assert all(name.startswith("reads") for name in order[:8])


def test_workloads_that_are_no_cells_keep_their_order() -> None:
    assert in_random_order([READS, WRITES], np.random.default_rng(1)) == [READS, WRITES]


def test_captured_workloads_have_as_many_clients_as_were_active() -> None:
    def captured(clients: int) -> Workload:
        return replace(READS, kind=CapturedLoad(CapturedWorkload("w", "18", 1, "d", 1.0, clients, (), ())))

    assert usual_clients([captured(1)]) == 1
    assert usual_clients([captured(2), captured(16)]) == 16
    assert usual_clients([captured(16), READS]) == 4  # no number suits both
    assert usual_clients([READS]) == usual_clients([]) == 4
