"""The record of a step: what is counted, and which part of it can stall."""

from __future__ import annotations

from dataclasses import dataclass, replace

import psycopg
import pytest

from pgdyno.base.errors import ConnectionFailedError, ServerCrashedError
from pgdyno.host.machine.usage import DeviceCounters, SystemCounters
from pgdyno.load.step_results import StepResult
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.before_after import HostCounters
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.step_record import ClientRecord, IntervalRecord, RoleRecord
from pgdyno.model.experiments.workload import Step
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.waits import ActivitySample, Wait
from pgdyno.studies.bundled.insert_benchmark.passes import (
    StepEvidence,
    _directory_bytes,
    operations,
    step_record,
    witness,
)
from pgdyno.studies.bundled.insert_benchmark.published import Footprint

LOADING = Step("loading", options={}, clients=2, operations="rows", rows_per_commit=50)
QUERYING = replace(LOADING, operations="queries", duration_s=8.0, target_rows_per_s=200.0)
CLIENTS = (ClientRecord(400, 6.5), ClientRecord(420, 8.0))
RESULT = StepResult(
    began_s=1000.0,
    running_s=8.0,
    chores_s=2.0,
    roles={
        "insert": RoleRecord("insert", 820, latency_ms={"max": 250.0}, clients=CLIENTS),
        "query": RoleRecord("query", 31, {"market": 10, "pdc": 20, "max-id": 1}, clients=CLIENTS),
    },
    intervals=tuple(
        IntervalRecord(float(at), 1.0, {"insert": count, "query": count})
        for at, count in enumerate([100, 100, 100, 20, 100, 100, 30, 30])
    ),
    client_cpu_us=1.0,
)
EVIDENCE = StepEvidence(
    samples=(
        ActivitySample(999.9, ((Wait("Lock", "tuple"), 1),)),  # before the step
        ActivitySample(1003.5, ((Wait("IO", "WalSync"), 3), (Wait("CPU"), 1))),
        ActivitySample(1010.1, ((Wait("Lock", "tuple"), 1),)),  # after it
    ),
    counters={"pg_stat_wal.wal_fpi": 3.0},
    dead_tuples=12,
    footprint=Footprint(database_bytes=2**30),
)
HOST = (
    HostCounters(SystemCounters(2, 10.0, 100.0, 1000), DeviceCounters(10, 1000, 20, 2000)),
    HostCounters(SystemCounters(2, 16.0, 120.0, 6000), DeviceCounters(30, 9192, 120, 2000)),
)


def test_rows_are_counted_in_steps_that_insert_and_queries_in_others() -> None:
    assert operations(LOADING, RESULT) == 820 * 50
    assert operations(QUERYING, RESULT) == 30
    assert operations(replace(LOADING, indexed_rows=7000), RESULT) == 7000


def test_a_record_holds_the_samples_of_the_step_itself_on_its_own_clock() -> None:
    found = step_record(LOADING, RESULT, EVIDENCE, HOST, 10.0)
    assert found.waits == {"IO": 0.75, "CPU": 0.25}
    assert found.wait_samples == 4
    assert [(stall.start_s, stall.why) for stall in found.stalls] == [
        (3.0, "3 of 4 busy backends waited for WAL (IO:WalSync 3)")
    ]
    assert (found.counters, found.dead_tuples) == ({"pg_stat_wal.wal_fpi": 3.0}, 12)


def test_a_step_that_ends_by_time_can_stall_until_its_end() -> None:
    # In LOADING the first client has done its part after 6.5 s.
    found = step_record(QUERYING, RESULT, EVIDENCE, HOST, 10.0)
    assert [(stall.start_s, stall.end_s) for stall in found.stalls] == [(3.0, 4.0), (6.0, 8.0)]
    assert found.target_rows_per_s == 200.0


def test_published_figures_are_of_the_whole_host_over_the_wall_time() -> None:
    found = step_record(LOADING, RESULT, EVIDENCE, HOST, 10.0).published
    expected = {
        "ips": 4100.0,  # 41000 rows in 8 s and 2 s of chores
        "rps": 2.0,
        "wps": 10.0,
        "csps": 500.0,
        "cpups": 30.0,  # 6 of 20 CPU seconds
        "maxop": 0.25,
        "dbgb1": 1.0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_host_that_cannot_be_read_leaves_its_figures_out() -> None:
    closed = HostCounters(None, None)
    found = step_record(LOADING, RESULT, EVIDENCE, (closed, closed), 10.0).published
    assert sorted(found) == ["dbgb1", "ips", "maxop", "qps"]


NOBODY = 4_194_305  # above the largest process id that Linux gives


@dataclass
class Server:
    """A server whose postmaster's end nobody has noticed yet, and that takes no connection."""

    pid: int = NOBODY
    host = dsn = user = ""
    port = 0

    def connect(self, database: str) -> ControlConnection:
        raise psycopg.OperationalError(
            f'connection failed: connection to server on socket "/s" failed: too many clients: {database}'
        )

    def last_log_lines(self) -> str:
        return "LOG:  shutting down"

    def stop(self, *, is_immediate: bool = False) -> None:
        """Do nothing."""


def test_a_postmaster_that_has_gone_has_no_data_directory_any_more() -> None:
    with pytest.raises(ServerCrashedError) as caught:
        _directory_bytes(Arm(Variant("worker"), Server()))
    assert caught.value.message == "the server of worker is no longer running"
    assert caught.value.detail == "LOG:  shutting down"


def test_a_server_that_is_full_is_told_as_that() -> None:
    split = CpuSplit(server=(0,), client=(0,), is_isolated=False)
    with (
        pytest.raises(ConnectionFailedError) as caught,
        witness(Arm(Variant("worker"), Server()), split, interval_s=1.0),
    ):
        pass
    assert caught.value.message == "could not connect to the server of worker"
    assert "too many clients: bench" in (caught.value.detail or "")
