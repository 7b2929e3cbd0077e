"""What every meter file must keep: on a context that answers, and on one that may read nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pgdyno.measure.meters import MeterModule, load
from pgdyno.model.experiments.metric import METRICS

METERS = load()

# /proc of a PostgreSQL 18 backend, shortened to what meters read.
PROCESS = {
    "stat": "41 (postgres: a b) S 1 41 41 0 -1 4194560 300 7 0 0 11 12 5 6 20 0 1 0 100 0 0\n",
    "status": (
        "Name:\tpostgres\nVmRSS:\t 900 kB\nVmPTE:\t 8 kB\nHugetlbPages:\t 100 kB\n"
        "voluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n"
    ),
    "smaps_rollup": "Rss: 900 kB\nAnonHugePages: 0 kB\nShmemPmdMapped: 2048 kB\nShared_Hugetlb: 4096 kB\n",
    "io": "rchar: 1\nread_bytes: 8192\nwrite_bytes: 16384\n",
}


class Answering:
    """Two server processes, a load that has cost something, a server that answers every query with 3."""

    def server_pids(self) -> tuple[int, ...]:
        return (41, 42)

    def client_cpu_us(self) -> tuple[float, ...] | None:
        return (150.0, 100.0)  # of two hosts

    def cpu_ns(self, pid: int) -> int | None:
        return 2_000_000

    def read_process(self, pid: int, name: str) -> str | None:
        return PROCESS[name]

    def threads(self, pid: int) -> tuple[int, ...]:
        return (pid,)

    def add_up(self, counter: str, by_pid: Mapping[int, float]) -> float:
        return sum(by_pid.values())

    def query(self, sql: str) -> tuple[float | None, ...]:
        return (3.0, 1.0) if sql.count("sum(") == 2 else (3.0,)

    def has_relation(self, name: str) -> bool:
        return True


class Forbidden(Answering):
    """Nothing may be read, and there is no load."""

    def client_cpu_us(self) -> tuple[float, ...] | None:
        return None

    def cpu_ns(self, pid: int) -> int | None:
        return None

    def read_process(self, pid: int, name: str) -> str | None:
        return None

    def query(self, sql: str) -> tuple[float | None, ...]:
        return (None, None) if sql.count("sum(") == 2 else (None,)


@pytest.fixture(params=METERS, ids=lambda meter: meter.METER.metric)
def meter(request: pytest.FixtureRequest) -> MeterModule:
    found: MeterModule = request.param
    return found


def test_its_metric_is_declared_once(meter: MeterModule) -> None:
    assert meter.METER.metric in METRICS
    assert [m.METER.metric for m in METERS].count(meter.METER.metric) == 1
    assert meter.METER.source


def test_reading_twice_gives_the_same_counters(meter: MeterModule) -> None:
    first = meter.read(Answering())
    assert first is not None
    assert first == meter.read(Answering())


def test_what_may_not_be_read_is_absent(meter: MeterModule) -> None:
    assert meter.read(Forbidden()) is None


def test_its_value_is_a_number_per_transaction_or_a_total(meter: MeterModule) -> None:
    delta = tuple(10.0 for _ in meter.read(Answering()) or ())
    value = meter.value(delta, 5)
    assert value is not None
    assert value >= 0


@pytest.mark.parametrize(
    ("metric", "counters"),
    [
        # 2 × 2 ms on a CPU, and 5 + 6 ticks of 10 ms of the postmaster's ended children.
        ("server_cpu_us_per_transaction", (4000 + 110_000,)),
        ("client_cpu_us_per_transaction", (150.0, 100.0)),
        ("context_switches_per_transaction", (80.0, 4.0)),
        ("minor_faults_per_transaction", (600.0,)),
        ("read_bytes_per_transaction", (16384.0,)),
        ("written_bytes_per_transaction", (32768.0,)),
        ("checkpoints", (3.0,)),
        ("cache_hit_ratio", (3.0, 1.0)),
        ("wal_bytes_per_transaction", (3.0,)),
        ("wal_full_page_images_per_transaction", (3.0,)),
        ("wal_segments_created", (3.0,)),
        ("page_table_bytes", (2 * 8 * 1024,)),
        ("huge_page_bytes", ((2048 + 4096) * 1024,)),
        ("parallel_workers_launched_share", (3.0, 1.0)),
    ],
)
def test_counters_are_what_the_kernel_and_the_server_say(metric: str, counters: tuple[float, ...]) -> None:
    (found,) = (m for m in METERS if m.METER.metric == metric)
    assert found.read(Answering()) == pytest.approx(counters)


def test_the_hit_ratio_is_hits_over_all() -> None:
    (found,) = (m for m in METERS if m.METER.metric == "cache_hit_ratio")
    assert found.value((30.0, 10.0), 1) == 0.75
    assert found.value((0.0, 0.0), 1) == 1.0


def test_workers_are_a_share_of_those_planned_and_nothing_where_none_were() -> None:
    (found,) = (m for m in METERS if m.METER.metric == "parallel_workers_launched_share")
    assert found.value((3.0, 4.0), 2) == 0.75
    assert found.value((0.0, 0.0), 2) is None


def test_versions_without_statistics_of_the_wal_have_no_full_page_images() -> None:
    class Version13(Answering):
        def has_relation(self, name: str) -> bool:
            return name != "pg_stat_wal"

    (found,) = (m for m in METERS if m.METER.metric == "wal_full_page_images_per_transaction")
    assert found.read(Version13()) is None


def test_versions_without_statistics_of_input_and_output_count_no_segments() -> None:
    class Version15(Answering):
        def has_relation(self, name: str) -> bool:
            return name != "pg_stat_io"

    assert meter_of("wal_segments_created").read(Version15()) is None


def meter_of(metric: str) -> MeterModule:
    (found,) = (m for m in METERS if m.METER.metric == metric)
    return found


def test_context_switches_of_a_process_are_those_of_all_its_threads() -> None:
    class WithKernelThreads(Answering):
        def threads(self, pid: int) -> tuple[int, ...]:
            return (pid, pid + 1000, pid + 2000)

    found = meter_of("context_switches_per_transaction")
    assert found.read(WithKernelThreads()) == pytest.approx((6 * 40.0, 6 * 2.0))


class Changing(Answering):
    """A postmaster, 41, and a backend, 42, that has read 8192 bytes when it ends."""

    def __init__(self, ends_at_look: int) -> None:
        """``ends_at_look``: the backend is there until the processes are listed for the so many-th time."""
        self.ends_at_look, self.looks = ends_at_look, 0
        self.last_read: dict[int, float] = {}

    def server_pids(self) -> tuple[int, ...]:
        self.looks += 1
        return (41, 42) if self.looks < self.ends_at_look else (41,)

    def add_up(self, counter: str, by_pid: Mapping[int, float]) -> float:
        self.last_read.update(by_pid)
        return sum(self.last_read.values())

    def read_process(self, pid: int, name: str) -> str | None:
        has_ended = self.looks + 1 >= self.ends_at_look  # right after the processes were listed
        if pid == 42:
            return None if has_ended else "read_bytes: 8192\nwrite_bytes: 8192\n"
        # The kernel adds what a child has done to its parent's when that has waited for it.
        return f"read_bytes: {8192 if has_ended else 0}\nwrite_bytes: {8192 if has_ended else 0}\n"


@pytest.mark.parametrize("metric", ["read_bytes_per_transaction", "written_bytes_per_transaction"])
def test_what_an_ended_process_has_read_and_written_counts_once(metric: str) -> None:
    context = Changing(ends_at_look=4)
    found = meter_of(metric)
    assert [found.read(context), found.read(context)] == [(8192.0,), (8192.0,)]
    assert context.looks > 2


def test_huge_pages_are_counted_in_the_process_that_has_touched_most() -> None:
    class WithOneThatHasTouchedMore(Answering):
        def read_process(self, pid: int, name: str) -> str | None:
            if name == "status":
                return f"VmRSS: {100 if pid == 41 else 60} kB\nHugetlbPages: {0 if pid == 41 else 50} kB\n"
            return "Shared_Hugetlb: 50 kB\n" if pid == 42 else "Shared_Hugetlb: 0 kB\n"

    assert meter_of("huge_page_bytes").read(WithOneThatHasTouchedMore()) == (50 * 1024,)


def test_a_level_is_what_was_read_last_however_much_was_done() -> None:
    assert meter_of("page_table_bytes").value((3_000_000.0,), 100) == 3_000_000
