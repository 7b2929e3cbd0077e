"""Short names of steps."""

from __future__ import annotations

from tests.golden.synthetic import experiment as without_steps
from tests.golden.synthetic_steps import experiment

from pgdyno.measure.view.wording import short_names, step_names, step_workloads


def test_words_that_all_names_begin_with_are_left_out() -> None:
    names = ("insert-benchmark-l.i0", "insert-benchmark-l.x", "insert-benchmark-qr100")
    assert short_names(names) == ("l.i0", "l.x", "qr100")


def test_names_are_cut_between_words_only() -> None:
    assert short_names(("insert-benchmark-l.i0", "insert-benchmark-l.i1")) == ("l.i0", "l.i1")
    assert short_names(("alpha", "alps")) == ("alpha", "alps")


def test_a_step_measured_alone_keeps_its_last_word() -> None:
    assert short_names(("insert-benchmark-qp100",)) == ("qp100",)


def test_nothing_has_no_names() -> None:
    assert short_names(()) == ()


def test_only_workloads_that_count_operations_of_their_own_are_steps() -> None:
    assert step_workloads(without_steps()) == ()
    assert list(step_names(experiment()).values())[:5] == ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]
