"""The Insert Benchmark's steps and targets, against the published description."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Sizing
from pgdyno.model.experiments.workload import Step, Workload
from pgdyno.studies.bundled.insert_benchmark.sizes import PRESETS
from pgdyno.studies.bundled.insert_benchmark.steps import steps
from pgdyno.studies.bundled.insert_benchmark.study import workloads

# The order of the published tables.
ORDER = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"]


def short(name: str) -> str:
    return name.removeprefix("insert-benchmark-")


def step_of(workload: Workload) -> Step:
    assert isinstance(workload.kind, Step)
    return workload.kind


def before(chosen: dict[str, Workload]) -> dict[str, list[str]]:
    """Return, for every chosen step, what is run before it and not measured."""
    return {
        short(name): [short(earlier.name) for earlier in step_of(workload).preceded_by]
        for name, workload in chosen.items()
    }


def test_with_all_steps_chosen_nothing_is_run_unmeasured() -> None:
    assert before(steps(PRESETS["quick"])) == {name: [] for name in ORDER}


def test_a_query_step_alone_brings_the_writing_steps_and_the_clean_up_along_and_no_other_query_step() -> None:
    chosen = steps(PRESETS["quick"], ["qp500"])
    assert before(chosen) == {"qp500": ["l.i0", "l.x", "l.i1", "l.i2"]}
    assert step_of(chosen["insert-benchmark-qp500"]).settle_s == 3.0


def test_a_writing_step_alone_is_the_last_that_runs() -> None:
    assert before(steps(PRESETS["quick"], ["l.x"])) == {"l.x": ["l.i0"]}


def test_several_steps_keep_their_order_and_each_brings_what_lies_between_them() -> None:
    chosen = steps(PRESETS["quick"], ["qr1000", "l.x", "qp100"])
    assert before(chosen) == {"l.x": ["l.i0"], "qp100": ["l.i1", "l.i2"], "qr1000": []}
    assert [step_of(workload).settle_s for workload in chosen.values()] == [None, 3.0, None]


def test_an_unknown_step_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        workloads(Sizing({"step": ("l.i0", "qr200")}))
    assert caught.value.message == 'the Insert Benchmark has no step "qr200"'
    assert caught.value.hint == f"known: {', '.join(ORDER)}"
