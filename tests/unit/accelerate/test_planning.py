"""A plan for a load with few busy sessions leaves the server's scheduling policy as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.accelerate.planning import plan_for
from pgdyno.base.facts import Fact
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures, resources_of
from pgdyno.plan.subject import Subject
from pgdyno.postgres.server import Program
from pgdyno.studies.bundled.insert_benchmark import study as insert_benchmark
from pgdyno.studies.bundled.tpch import study as tpch
from pgdyno.workload.workload_choice import find_workloads

POLICY = "process.scheduling_policy"
USUAL = find_workloads(("sysbench-read-only",))
EARLY_STEPS = Sizing({"step": ("l.i1", "qr100")})


def planned(workloads: Mapping[str, Workload], clients: int) -> Mapping[str, str]:
    """Return what the system layer's levers plan for a scratch server on 2 CPUs."""
    host = host_of(cpus=2)
    server = replace(server_of(), program=Program(scheduling_policy=Fact("SCHED_OTHER", "/proc/7/stat")))
    subject = Subject(host, server, resources_of(host, server, Figures()), statements=Fact((), "a test"))
    conditions = Conditions(None, workloads, Design(clients=clients))
    request = PlanRequest(layers=(Layer.SYSTEM,), may_change_host=False)
    return plan_for(subject, Variant("default"), conditions, request).plan.values


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(
    ("workloads", "clients"),
    [
        (USUAL, 4),  # which is what the lever's worth was measured with
        (insert_benchmark.workloads(replace(EARLY_STEPS, clients=3)), 1),
    ],
)
def test_more_sessions_than_cpus_wait_for_their_turn(workloads: Mapping[str, Workload], clients: int) -> None:
    assert planned(workloads, clients)[POLICY] == "batch"


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(
    ("workloads", "clients"),
    [
        (USUAL, 2),
        (insert_benchmark.workloads(replace(EARLY_STEPS, clients=1)), 4),  # whose queries were 7 times slower
        (tpch.workloads(Sizing(scale=0.1, clients=8)), 8),  # of which the power run has one
        ({**USUAL, **insert_benchmark.workloads(replace(EARLY_STEPS, clients=2))}, 4),
    ],
)
def test_no_more_sessions_than_cpus_interrupt_others_as_usual(
    workloads: Mapping[str, Workload], clients: int
) -> None:
    assert POLICY not in planned(workloads, clients)
