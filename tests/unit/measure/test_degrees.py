"""What is said of degrees that were measured with different plans."""

from __future__ import annotations

from pgdyno.measure.bundled_study import Machine, Sizing
from pgdyno.measure.degrees import DegreePlans
from pgdyno.studies.bundled import parallel_degree

CELLS = {
    name: workload.cell
    for name, workload in parallel_degree.workloads(Sizing(machine=Machine(2, 1 << 34), clients=1)).items()
    if workload.cell
}


def test_degrees_with_another_plan_are_named() -> None:
    plans = DegreePlans()
    merged = "Merge Join, Seq Scan"
    for workers, made_of in ((4, "Hash Join, Seq Scan"), (0, merged), (1, merged)):
        plans.add(CELLS[f"count-{workers}"], made_of)
        plans.add(CELLS[f"bitand-{workers}"], "Seq Scan")
    (note,) = plans.notes()
    assert note == (
        "count: not only the number of workers differs; plans by workers: 0, 1: Merge Join, Seq Scan; "
        "4: Hash Join, Seq Scan"
    )
