"""Which statements a real server plans at every execution, and where one plan for all values is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact, Unknown
from pgdyno.load.discovery import find_driver
from pgdyno.load.driver import Driver
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.statement_plans import plan_statement, plan_workload
from pgdyno.postgres.statements import PlannedStatement, PreparedStatement, WorkloadStatements
from pgdyno.workload.bundled import load

pytestmark = pytest.mark.server

LEVER = {"plan_cache_mode": levers.load()["plan_cache_mode"]}
# A custom plan expects 100 rows of BETWEEN, a generic one 0.5 % of 60,000: 300 (DEFAULT_RANGE_INEQ_SEL).
SMALL = {"sysbench": "-otables=2 -otable_size=60000", "pgbench": "-oscale=1"}
RANGES = ("simple-range", "sum-range", "order-range", "distinct-range")


@pytest.fixture(params=["pg18", "pg15"])
def server(request: pytest.FixtureRequest) -> RealServer:
    found: RealServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def connection(server: RealServer) -> Iterator[psycopg.Connection]:
    """A database of the test's own."""
    with closing(psycopg.connect(server.dsn, autocommit=True)) as control:
        control.execute("DROP DATABASE IF EXISTS planned WITH (FORCE)")
        control.execute("CREATE DATABASE planned")
        dsn = server.dsn_for("postgres", "planned")
        with closing(psycopg.connect(dsn, autocommit=True, prepare_threshold=None)) as own:
            yield own
        control.execute("DROP DATABASE planned WITH (FORCE)")


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return find_driver(tmp_path)


def small(name: str, scale: int, **options: str) -> Workload:
    """Return a bundled workload on little data."""
    workload = load()[name]
    data_set = DataSet(workload.data_set.name, scale, 1, options)
    return Workload(name, workload.title, data_set, workload.reset, workload.kind)


def planned(
    connection: psycopg.Connection, server: RealServer, driver: Driver, workload: Workload
) -> WorkloadStatements:
    """Load a workload's tables and plan its statements."""
    options = SMALL[workload.data_set.name].split()
    target = server.dsn_for("postgres", "planned")
    subprocess.run([driver.program, "load", workload.name, target, *options], check=True, timeout=120)
    found = plan_workload(connection, workload, lambda: driver)
    known = found.or_none()
    assert known is not None, found
    return known


def plan_of(*workloads: WorkloadStatements) -> Plan:
    request = PlanRequest(statements=Fact(workloads, "a test"))
    return make_plan(host_of(), server_of(), request, levers=LEVER)


def test_sysbench_reads_are_planned_anew_with_plans_that_are_alike(
    connection: psycopg.Connection, server: RealServer, driver: Driver
) -> None:
    found = planned(connection, server, driver, small("sysbench-read-only", 60, tables="2"))
    assert found.planned_anew == RANGES
    assert found.names == ("point-select", *RANGES)
    for statement in found.statements:
        assert statement.other_shape is None
    ranges = [one for one in found.statements if one.name == "simple-range"]
    assert {one.generics[0].rows[0] for one in ranges} == {300}
    assert all(plan.rows[0] == pytest.approx(100, rel=0.2) for one in ranges for plan in one.customs)
    plan = plan_of(found)
    assert plan.settings == {"plan_cache_mode": "force_generic_plan"}
    assert "4 of 5 statements (simple-range, sum-range, order-range, distinct-range)" in plan.lines[0].reason


def test_sysbench_read_write_plans_its_writes_without_running_them(
    connection: psycopg.Connection, server: RealServer, driver: Driver
) -> None:
    workload = small("sysbench-read-write", 60, tables="2")
    found = planned(connection, server, driver, workload)
    rows = connection.execute("SELECT sum(k), count(*), min(xmin::text) FROM sbtest1").fetchone()
    again = plan_workload(connection, workload, lambda: driver)
    assert again.is_known
    assert connection.execute("SELECT sum(k), count(*), min(xmin::text) FROM sbtest1").fetchone() == rows
    assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    writes = [one for one in found.statements if one.execution_ms is None]
    assert {one.name for one in writes} == {"index-update", "non-index-update", "delete", "insert"}
    assert found.planned_anew == RANGES
    assert plan_of(found).settings == {"plan_cache_mode": "force_generic_plan"}


def test_pgbench_keeps_its_plans_by_itself(
    connection: psycopg.Connection, server: RealServer, driver: Driver
) -> None:
    found = planned(connection, server, driver, small("pgbench-select", 1))
    assert found.planned_anew == ()
    plan = plan_of(found)
    assert plan.lines == ()
    assert plan.skipped[0].reason == "the server already keeps a generic plan for every prepared statement"


def refused(connection: psycopg.Connection, sql: str, *values: str) -> str:
    """Return why one plan for all values is refused to a statement."""
    samples = tuple((value,) for value in values)
    statement = PreparedStatement("tested", sql, (20,), samples, 1.0)
    found: PlannedStatement = plan_statement(connection, statement, is_run=sql.startswith("SELECT"))
    plan = plan_of(WorkloadStatements("test", (found,)))
    assert plan.lines == ()
    return plan.skipped[0].reason


def test_partitions_that_values_leave_out_are_a_reason_to_refuse(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE parted (a bigint PRIMARY KEY, b int) PARTITION BY RANGE (a)")
    for part in range(4):
        bounds = f"FROM ({part * 1000}) TO ({(part + 1) * 1000})"
        connection.execute(f"CREATE TABLE parted_{part} PARTITION OF parted FOR VALUES {bounds}")
    connection.execute("INSERT INTO parted SELECT i, i FROM generate_series(0, 3999) i")
    connection.execute("ANALYZE parted")
    reason = refused(connection, "SELECT b FROM parted WHERE a = $1", "5", "3500")
    assert reason == 'partitions are pruned by value: "SELECT b FROM parted WHERE a = $1" of test'
    reason = refused(connection, "UPDATE parted SET b = 1 WHERE a = $1", "5")
    assert reason.startswith("partitions are pruned by value: ")


def test_a_skewed_column_is_a_reason_to_refuse(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE skewed (a bigint, b text)")
    rows = "SELECT CASE WHEN i <= 90000 THEN 0 ELSE i END, repeat('x', 100) FROM generate_series(1, 100000) i"
    connection.execute(f"INSERT INTO skewed {rows}")
    connection.execute("CREATE INDEX ON skewed (a)")
    connection.execute("VACUUM ANALYZE skewed")
    reason = refused(connection, "SELECT b FROM skewed WHERE a = $1", "95000", "0")
    assert reason == (
        "a custom plan has Seq Scan on skewed, the generic plan Index Scan on skewed (skewed_a_idx): "
        '"SELECT b FROM skewed WHERE a = $1" of test'
    )


def test_limit_with_order_by_is_a_reason_to_refuse(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE queue (a bigint PRIMARY KEY, b int)")
    connection.execute("INSERT INTO queue SELECT i, i FROM generate_series(1, 1000) i")
    connection.execute("ANALYZE queue")
    sql = "SELECT b FROM queue WHERE a > $1 ORDER BY a LIMIT 10"
    assert refused(connection, sql, "5") == f'LIMIT with ORDER BY needs a custom plan: "{sql}" of test'


def test_statements_that_cannot_be_planned_are_unknown_with_the_servers_words(
    connection: psycopg.Connection, driver: Driver
) -> None:
    found = plan_workload(connection, small("pgbench-select", 1), lambda: driver)
    assert isinstance(found.value, Unknown)
    assert found.value.reason == (
        'could not plan "SELECT abalance FROM pgbench_accounts WHERE aid = $1;": '
        'relation "pgbench_accounts" does not exist'
    )
