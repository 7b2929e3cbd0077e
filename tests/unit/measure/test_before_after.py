"""The audit of a step or a run, from readings at its two ends."""

from __future__ import annotations

import pytest

from pgdyno.host.host import HostCpu
from pgdyno.measure.before_after import Edge, HostCounters, audit_between
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.metric import SERVER_CPU

SPLIT = CpuSplit((0,), (1,), is_isolated=True)


def edge(at_s: float, busy_s: float, own_cpu_s: float, writeback: dict[int, tuple[float, bool]]) -> Edge:
    cpu = HostCpu(at_s, busy_s, 0.0)
    return Edge(int(at_s * 1e9), cpu, HostCounters(None, None), {}, own_cpu_s, writeback)


def test_threads_that_write_the_servers_data_are_no_disturbance() -> None:
    # In 10 s, 2 CPUs were busy for 14 s: server 6 s, load 3 s, pgdyno 0.5 s, writers 1.2 + 0.3 s, others 3 s.
    began = edge(100, 50, 7.0, {7: (20.0, True), 8: (1.0, False), 9: (5.0, False)})
    ended = edge(110, 64, 7.5, {7: (21.2, True), 8: (1.3, True), 9: (7.0, False), 10: (0.4, True)})
    audit = audit_between(began, ended, {SERVER_CPU: (4e6, 2e6)}, 3e6, SPLIT)
    assert audit["foreign_cpu_share"] == pytest.approx(3 / 20)
