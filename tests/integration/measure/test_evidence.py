"""The evidence of a step, from real servers of two generations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, wait_until

from pgdyno.base.errors import ServerError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.meters import load as load_meters
from pgdyno.model.experiments.experiment import ArmBlock, Design
from pgdyno.model.experiments.step_record import StepRecord
from pgdyno.model.experiments.workload import Step
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import installation_in
from pgdyno.postgres.sampling.activity import ActivitySampling
from pgdyno.postgres.sampling.counters import (
    Connection,
    client_pids,
    difference,
    read_counters,
    read_database_bytes,
    read_dead_tuples,
    wait_for_clients_to_end,
)
from pgdyno.postgres.waits import Wait
from pgdyno.studies.bundled.insert_benchmark.passes import measure_step
from pgdyno.studies.bundled.insert_benchmark.sizes import Size
from pgdyno.studies.bundled.insert_benchmark.steps import PREFIX, steps

pytestmark = pytest.mark.server

SIZE = Size("test", clients=2, rows=(3000, 500, 100), step_s=1, wait_s=0.0)
EVERY_S = 0.01


@pytest.fixture(params=[15, 18])
def server(request: pytest.FixtureRequest) -> RealServer:
    found: RealServer = request.getfixturevalue(f"pg{request.param}")
    return found


@pytest.fixture
def connection(server: RealServer) -> Iterator[Connection]:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as opened:
        yield opened


@pytest.fixture
def table(server: RealServer) -> Iterator[None]:
    server.execute(
        "CREATE TABLE counted (id int) WITH (autovacuum_enabled = off)"
    )  # else it may come between
    yield
    server.execute("DROP TABLE counted")


@pytest.mark.usefixtures("table")
def test_counters_hold_what_clients_did_as_soon_as_they_have_ended(
    server: RealServer, connection: Connection
) -> None:
    others, before = client_pids(connection), read_counters(connection)
    server.execute("INSERT INTO counted SELECT generate_series(1, 1000)")
    server.execute("DELETE FROM counted WHERE id <= 300")
    wait_for_clients_to_end(connection, others, limit_s=120)
    counted = difference(before, read_counters(connection))
    assert counted["pg_stat_all_tables.n_tup_ins"] == 1000
    assert counted["pg_stat_all_tables.n_tup_del"] == 300
    assert counted["pg_stat_wal.wal_records"] >= 1300
    assert read_dead_tuples(connection) >= 300
    assert read_database_bytes(connection) > 1_000_000


def test_views_are_those_that_the_server_has(server: RealServer, connection: Connection) -> None:
    views = {name.partition(".")[0] for name in read_counters(connection)}
    since_16, since_17 = {"pg_stat_io"}, {"pg_stat_checkpointer"}
    in_all = {"pg_stat_wal", "pg_stat_bgwriter", "pg_stat_database"}
    major = connection.info.server_version // 10_000
    assert views - {"pg_stat_all_tables"} == in_all | (since_16 | since_17 if major >= 18 else set())
    if major >= 18:
        assert "pg_stat_io.client_backend.relation.normal.reads" in read_counters(connection)
        assert "pg_stat_checkpointer.num_timed" in read_counters(connection)
    else:
        assert "pg_stat_bgwriter.checkpoints_timed" in read_counters(connection)


def test_busy_backends_are_seen_with_what_they_wait_for(server: RealServer, connection: Connection) -> None:
    with ActivitySampling(connection, server.pid, EVERY_S) as sampling:

        def is_seen_asleep() -> bool:
            server.execute("SELECT pg_sleep(0.2)")
            waits = [wait for sample in sampling.samples for wait, _ in sample.waits]
            return Wait("Timeout", "PgSleep") in waits

        wait_until(is_seen_asleep)
    assert sampling.largest_process_bytes > 1_000_000
    times = [sample.at_s for sample in sampling.samples]
    assert times == sorted(times)
    assert connection.execute("SELECT 1").fetchone() == (1,)  # it is the caller's again


def test_a_sampling_that_failed_says_so_when_it_is_stopped(
    server: RealServer, connection: Connection
) -> None:
    def terminate() -> None:
        with ActivitySampling(connection, server.pid, EVERY_S):
            server.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
            wait_until(lambda: connection.closed)

    with pytest.raises(ServerError) as caught:
        terminate()
    assert caught.value.message == "could not sample the activity of the server"
    # libpq has read the server's reason ("terminating connection …"), or only that nobody is there any more.
    assert "connection" in (caught.value.detail or "")


def test_an_error_of_the_step_itself_is_not_hidden_by_one_of_the_sampling(
    server: RealServer, connection: Connection
) -> None:
    def fail() -> None:
        with ActivitySampling(connection, server.pid, EVERY_S):
            connection.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_control_connections_have_a_limit_that_is_not_taken_for_the_servers(server: RealServer) -> None:
    attached = AttachedServer(server.dsn, host="", port=0, user="", pid=server.pid)
    arm = Arm(Variant("default", {}), attached, database="postgres")
    with closing(arm.connect()) as opened:
        assert opened.execute("SHOW statement_timeout").fetchone() == ("2min",)
    assert arm.effective(["statement_timeout"]) == {"statement_timeout": "0"}
    assert arm.holds("SELECT current_setting('statement_timeout') = '2min'")
    arm.close()


@pytest.mark.parametrize("major", [15, 18])
def test_a_step_has_a_record_of_everything(major: int, home: Path, request: pytest.FixtureRequest) -> None:
    bin_directory: Path = request.getfixturevalue(f"pg{major}_bin")
    loading, querying = measured(bin_directory, ["l.i0", "qr100"])
    check_loading(loading)
    check_querying(querying)
    has_io = any(name.startswith("pg_stat_io.") for name in loading.step.counters)  # type: ignore[union-attr]
    assert has_io == (major >= 16)


def measured(bin_directory: Path, names: list[str]) -> list[ArmBlock]:
    """Run steps one after the other on a scratch server."""
    variant, design = Variant("default", {}), Design()
    workloads = [steps(SIZE)[f"{PREFIX}{name}"] for name in names]
    data_set = workloads[0].data_set
    kinds = [workload.kind for workload in workloads if isinstance(workload.kind, Step)]
    installation = installation_in(bin_directory)
    with open_scratch_arena(installation, [variant], Lines(), is_isolated=True) as arena:
        arena.restore([variant], [0], data_set)
        with arena.arms([variant], [0], data_set) as (arm,):
            blocks = [measure_step(arena.loads, arm, step, 0, design, load_meters()) for step in kinds]
    return [block.arms[0] for block in blocks]


def check_loading(found: ArmBlock) -> None:
    record = record_of(found)
    assert (record.operations, record.completed, found.transactions) == ("rows", 6000, 6000)
    assert record.counters["pg_stat_all_tables.n_tup_ins"] == 6000
    (insert,) = record.roles
    assert (insert.name, insert.transactions, insert.statements) == ("insert", 60, {"insert": 60})
    assert [client.transactions for client in insert.clients] == [30, 30]
    assert record.published["ips"] == pytest.approx(found.values["throughput_tps"])
    # Every commit waits for the disk, so that every backend has gone to sleep for it: none is missing.
    assert found.values["context_switches_per_transaction"] * 6000 > 60


def check_querying(found: ArmBlock) -> None:
    record = record_of(found)
    assert (record.operations, record.target_rows_per_s) == ("queries", 200)
    assert {role.name for role in record.roles} == {"insert", "delete", "maker", "query"}
    assert sum(interval.transactions["query"] for interval in record.intervals) <= record.completed
    assert record.intervals[0].start_s == 0
    assert record.dead_tuples is not None
    assert record.counters["pg_stat_all_tables.vacuum_count"] == 0  # the clean-up was before it
    every_figure = {"ips", "qps", "csps", "cpups", "cspq", "cpupq", "dbgb1", "dbgb2", "rss", "maxop"}
    assert every_figure <= set(record.published)
    assert found.values["wal_full_page_images_per_transaction"] > 0  # after the clean-up's checkpoint


def record_of(found: ArmBlock) -> StepRecord:
    assert found.step is not None
    assert all(value >= 0 for value in found.step.counters.values())
    return found.step
