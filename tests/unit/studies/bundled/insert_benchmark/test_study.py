"""The Insert Benchmark's steps and targets, against the published description."""

from __future__ import annotations

from dataclasses import replace

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


def test_there_are_ten_steps_in_the_published_order() -> None:
    assert list(workloads(Sizing())) == [f"insert-benchmark-{name}" for name in ORDER]


def test_query_steps_have_the_rate_in_their_name_per_client_and_writing_steps_have_none() -> None:
    targets = [step_of(w).target_rows_per_s for w in workloads(Sizing(clients=3)).values()]
    assert targets == [None, None, None, None, 300, 300, 1500, 1500, 3000, 3000]


def test_indexed_rows_are_counted_once_and_include_the_hundred_that_each_client_inserts() -> None:
    step = step_of(workloads(Sizing({"rows": ("1000/200/20",)}, clients=4))["insert-benchmark-l.x"])
    assert step.indexed_rows == 4 * (1000 + 100)


def test_the_clean_up_comes_right_before_the_first_query_step() -> None:
    settled = [name for name, w in workloads(Sizing()).items() if step_of(w).settle_s is not None]
    assert settled == ["insert-benchmark-qr100"]


def test_the_faithful_mode_ends_query_steps_by_count_and_the_corrected_one_by_time() -> None:
    corrected = step_of(steps(PRESETS["quick"])["insert-benchmark-qp500"])
    faithful = step_of(steps(replace(PRESETS["quick"], is_faithful=True))["insert-benchmark-qp500"])
    assert (corrected.duration_s, corrected.options["ends"]) == (6, "time")
    assert (faithful.duration_s, faithful.options.get("ends")) == (None, None)
    assert faithful.options["mode"] == "faithful"


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


@pytest.mark.parametrize(("step_s", "interval_s"), [(1, 0.1), (6, 0.25), (12, 0.5), (1800, 1.0)])
def test_shorter_steps_have_shorter_intervals(step_s: int, interval_s: float) -> None:
    found = workloads(Sizing({"step-seconds": (str(step_s),)})).values()
    assert {step_of(workload).interval_s for workload in found} == {interval_s}


def test_waiting_for_an_index_of_many_rows_is_bounded_by_their_number() -> None:
    step = step_of(workloads(Sizing({"preset": ("ax162-s",)}))["insert-benchmark-l.x"])
    assert step.patience_s == 600 + 200_000  # 4 billion rows at 20,000 rows per second
