"""The study like TPC-H: what it measures, its sizes, and what it refuses."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled.tpch.queries import usual_streams
from pgdyno.studies.bundled.tpch.study import study, workloads


def test_22_queries_two_refresh_functions_and_two_runs_are_measured_on_restored_data() -> None:
    found = workloads(Sizing(scale=0.1))
    assert len(found) == 26
    assert {one.reset for one in found.values()} == {ResetPolicy.RESTORE}
    assert len({one.data_set.key for one in found.values()}) == 1
    assert found["tpch-q22"].data_set.scale == 100


@pytest.mark.parametrize(
    ("scale", "streams"),
    [(0.001, 2), (1, 2), (9.9, 2), (10, 3), (30, 4), (100, 5), (300, 6), (1000, 7), (30_000, 10)],
)
def test_there_are_as_many_streams_as_clause_5_3_4_asks_for(scale: float, streams: int) -> None:
    assert usual_streams(round(scale * 1000)) == streams


def test_clients_are_the_streams() -> None:
    (first, *_) = workloads(Sizing(scale=0.1, clients=5)).values()
    assert first.step is not None
    assert first.step.clients == 5


def test_every_output_says_that_it_is_no_tpch_result() -> None:
    labels = {one.step.label for one in workloads(Sizing(scale=0.25)).values() if one.step}
    assert labels == {
        (
            "TPC-H-like: not a TPC-H result, and not comparable with published TPC-H results; scale 0.25, 2 "
            "streams in the throughput run"
        )
    }
    context = StudyContext(Variant("default"), (), Design(), sizing=Sizing(scale=0.25))
    assert "TPC-H-like workload at scale 0.25" in study(context).question


@pytest.mark.parametrize("scale", [0.0004, 0.0015, float("nan"), float("inf")])
def test_a_scale_that_is_no_multiple_of_a_thousandth_is_refused(scale: float) -> None:
    with pytest.raises(UsageError) as refused:
        workloads(Sizing(scale=scale))
    assert str(refused.value) == (
        f"--scale {scale:g} is not a multiple of 0.001\n"
        "HINT:  --scale 1 is 1.8 GB on disk, --scale 0.1 a tenth of that"
    )


def test_more_streams_than_have_an_order_are_refused() -> None:
    with pytest.raises(UsageError, match="there are at most 10 streams, not 11"):
        workloads(Sizing(clients=11))
