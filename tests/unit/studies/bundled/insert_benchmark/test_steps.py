"""The steps of the Insert Benchmark, in the published order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.studies.bundled.insert_benchmark.test_study import ORDER, step_of

from pgdyno.measure.bundled_study import Sizing
from pgdyno.studies.bundled.insert_benchmark.sizes import PRESETS
from pgdyno.studies.bundled.insert_benchmark.steps import steps
from pgdyno.studies.bundled.insert_benchmark.study import workloads


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


@pytest.mark.parametrize(("step_s", "interval_s"), [(1, 0.1), (6, 0.25), (12, 0.5), (1800, 1.0)])
def test_shorter_steps_have_shorter_intervals(step_s: int, interval_s: float) -> None:
    found = workloads(Sizing({"step-seconds": (str(step_s),)})).values()
    assert {step_of(workload).interval_s for workload in found} == {interval_s}


def test_waiting_for_an_index_of_many_rows_is_bounded_by_their_number() -> None:
    step = step_of(workloads(Sizing({"preset": ("ax162-s",)}))["insert-benchmark-l.x"])
    assert step.patience_s == 600 + 200_000  # 4 billion rows at 20,000 rows per second
