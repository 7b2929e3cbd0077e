"""The Insert Benchmark's steps, sizes and targets, against the published description."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.model.errors import UsageError
from pgdyno.studies._contract import Sizing
from pgdyno.studies._insert_benchmark import PRESETS, steps
from pgdyno.studies.insert_benchmark import workloads

# The order of the published tables.
ORDER = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"]


def test_there_are_ten_steps_in_the_published_order() -> None:
    assert list(workloads(Sizing())) == [f"insert-benchmark-{name}" for name in ORDER]


def test_query_steps_have_the_rate_in_their_name_per_client_and_writing_steps_have_none() -> None:
    targets = [w.step.target_rows_per_s for w in workloads(Sizing(clients=3)).values() if w.step]
    assert targets == [None, None, None, None, 300, 300, 1500, 1500, 3000, 3000]


def test_indexed_rows_are_counted_once_and_include_the_hundred_that_each_client_inserts() -> None:
    step = workloads(Sizing(clients=4, rows=(1000, 200, 20)))["insert-benchmark-l.x"].step
    assert step is not None
    assert step.indexed_rows == 4 * (1000 + 100)


def test_the_clean_up_comes_right_before_the_first_query_step() -> None:
    settled = [name for name, w in workloads(Sizing()).items() if w.step and w.step.settle_s is not None]
    assert settled == ["insert-benchmark-qr100"]


def test_the_faithful_mode_ends_query_steps_by_count_and_the_corrected_one_by_time() -> None:
    corrected = steps(PRESETS["quick"])["insert-benchmark-qp500"].step
    faithful = steps(replace(PRESETS["quick"], is_faithful=True))["insert-benchmark-qp500"].step
    assert corrected is not None
    assert faithful is not None
    assert (corrected.duration_s, corrected.options["ends"]) == (6, "time")
    assert (faithful.duration_s, faithful.options.get("ends")) == (None, None)
    assert faithful.options["mode"] == "faithful"


def test_an_unknown_preset_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        workloads(Sizing(preset="huge"))
    assert caught.value.message == 'no preset "huge" of the Insert Benchmark'
    assert "quick" in (caught.value.hint or "")
