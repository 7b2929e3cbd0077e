"""Series of a step."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic_steps import PREFIX
from tests.golden.synthetic_steps import experiment as of_ten_steps
from tests.unit.studies.bundled.insert_benchmark.test_step_tables import INSERT, step

from pgdyno.model.experiments.step_record import (
    ClientRecord,
    IntervalRecord,
)
from pgdyno.report.charts.rates import RatePoint
from pgdyno.studies.bundled.insert_benchmark.step_tables import (
    Recorded,
    fairness,
    rate_strips,
    recorded,
)


def test_fairness_is_the_slowest_clients_rate_relative_to_the_fastests() -> None:
    assert fairness(INSERT) == (10 / 8.0) / (20 / 10.0)
    assert fairness(replace(INSERT, clients=(ClientRecord(20, 10.0),))) is None


def test_rate_over_time_counts_the_steps_own_rows() -> None:
    intervals = (
        IntervalRecord(0.0, 1.0, {"insert": 20}),
        IntervalRecord(1.0, 0.5, {"insert": 10}),
    )
    base, workload = of_ten_steps(), f"{PREFIX}l.i0"
    found = [Recorded("17", 1, step(intervals=intervals))]
    (strip,) = rate_strips(base, found)
    assert strip.lines[0].points == (RatePoint(0.0, 1.0, 1000.0), RatePoint(1.0, 0.5, 1000.0))
    assert rate_strips(base, recorded(base, f"{PREFIX}l.x")) == ()
    assert len(rate_strips(base, recorded(base, workload))) == 4
