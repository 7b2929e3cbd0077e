"""The published figures, computed by hand from what etl.sh, ios.sh and np.sh of the original do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.host.host import DeviceUse, SystemUse
from pgdyno.model.experiments.step_record import IntervalRecord
from pgdyno.studies.bundled.insert_benchmark.published import (
    Footprint,
    Work,
    published,
    rates_by_second,
)

LOADING = Work(
    is_loading=True,
    rows_inserted=200_000,
    queries=0,
    elapsed_s=10.0,
    longest_ms=1500.0,
    rates=[float(rate) for rate in range(1, 101)],
)
QUERYING = replace(LOADING, is_loading=False, rows_inserted=1000, queries=50_000)
SYSTEM = SystemUse(wall_s=20.0, cpus=4, busy_share=0.25, context_switches=400_000)
DEVICE = DeviceUse(
    wall_s=20.0, reads=2000, read_bytes=20 * 1024 * 1024, writes=4000, written_bytes=40 * 1024 * 1024
)
FOOTPRINT = Footprint(database_bytes=2**31, directory_bytes=3 * 2**30, largest_process_bytes=2**29)

# Device: 100 reads and 1 MiB, 200 writes and 2 MiB a second. System: 20000 switches and 1e6 µs a second. They
# were looked at for twice as long as the clients ran; per operation is all there was by all operations.
LOADED = {
    "ips": 20_000.0, "qps": 0.0, "rps": 100.0, "rmbps": 1.0, "wps": 200.0, "wmbps": 2.0, "rpq": 0.01,
    "rkbpq": 0.1024, "wpi": 0.02, "wkbpi": 0.2048, "csps": 20_000.0, "cpups": 25.0, "cspq": 2.0,
    "cpupq": 100.0, "dbgb1": 2.0, "dbgb2": 3.0, "rss": 0.5, "maxop": 1.5, "p50": 51.0, "p99": 2.0,
}  # fmt: skip


def test_a_loading_step_has_all_figures_but_the_tag_per_row() -> None:
    assert published(LOADING, SYSTEM, DEVICE, FOOTPRINT) == pytest.approx(LOADED)


def test_a_querying_step_has_reads_and_cpu_per_query_and_writes_per_row() -> None:
    found = published(QUERYING, SYSTEM, DEVICE, FOOTPRINT)
    expected = {"ips": 100.0, "qps": 5000.0, "rpq": 0.04, "rkbpq": 0.4096, "wpi": 4.0, "wkbpi": 40.96}
    expected |= {"cspq": 8.0, "cpupq": 400.0}
    assert found == pytest.approx({**LOADED, **expected})


def test_what_could_not_be_read_is_absent() -> None:
    bare = published(replace(LOADING, longest_ms=None), None, None, Footprint())
    assert bare == pytest.approx({"ips": 20_000.0, "qps": 0.0, "p50": 51.0, "p99": 2.0})


def test_nothing_is_divided_by_no_operations() -> None:
    found = published(replace(QUERYING, rows_inserted=0), SYSTEM, DEVICE, FOOTPRINT)
    assert {"wpi", "wkbpi"}.isdisjoint(found)


def test_percentiles_of_nine_seconds_are_not_published() -> None:
    found = published(replace(LOADING, rates=[1.0] * 9), None, None, Footprint())
    assert {"p50", "p99"}.isdisjoint(found)


def test_p99_is_among_the_slowest_seconds() -> None:
    # np.sh: head -$(printf %.0f 19.8) | tail -1 of 20 lines in descending order is the last one.
    found = published(replace(LOADING, rates=[100.0] * 19 + [7.0]), None, None, Footprint())
    assert (found["p50"], found["p99"]) == (100.0, 7.0)


def test_shorter_intervals_are_put_together_to_seconds_and_the_rest_is_left_out() -> None:
    intervals = [IntervalRecord(at / 4, 0.25, {"insert": count}) for at, count in enumerate([1, 2, 3, 4, 5])]
    assert rates_by_second(intervals, "insert", 50) == [500.0]


def test_a_longer_interval_counts_for_its_length() -> None:
    assert rates_by_second([IntervalRecord(0.0, 2.0, {"query": 30})], "query", 1) == [15.0]
    assert rates_by_second([IntervalRecord(0.0, 1.0, {"query": 30})], "insert", 50) == [0.0]
