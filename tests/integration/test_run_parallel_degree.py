"""``pgdyno run parallel-degree`` on real servers: every degree is what it says, or the run says why not."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import psycopg
import pytest
from click.testing import CliRunner
from tests.fix_home import pgdyno
from tests.fix_rounds import WHATEVER_ELSE_RUNS
from tests.fix_servers import RealServer

from pgdyno.base.errors import MeasurementError, ServerError, UsageError
from pgdyno.cli.main import cli
from pgdyno.cli.output import Lines
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.measure.bundled_study import Machine, Sizing, StudyContext
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.degrees import require_degree
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Statement, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.studies.attached import look
from pgdyno.studies.bundled import parallel_degree as study_file

pytestmark = pytest.mark.server

DATABASE, PARTED, ROLE = "degrees", "parted_degrees", "querying"
SOME = (
    "count-0",
    "bitand-4",
    "bitand-1-by-2",
    "create-index-2",
    "create-index-1-by-2",
    "partition-wise-2",
)
TINY = Sizing(machine=Machine(2, 32 << 20))  # 111,000 rows
(COUNT,) = (one for name, one in study_file.workloads(TINY).items() if name == "count-2")


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute(f"CREATE ROLE {ROLE} LOGIN IN ROLE pg_monitor")
    running.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    with psycopg.connect(running.dsn_for(ROLE, DATABASE), autocommit=True) as connection:
        connection.execute("CREATE TABLE t_bit(id bit(200)) WITH (parallel_workers = 1024)")
        connection.execute(
            "INSERT INTO t_bit SELECT ('x' || md5(i::text))::bit(200) FROM generate_series(1, 20000) i"
        )
        connection.execute("CREATE SEQUENCE written")
        connection.execute("ANALYZE")
    running.execute(f"CREATE DATABASE {PARTED}")
    with psycopg.connect(running.dsn_for("postgres", PARTED), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t_bit(id bit(200)) PARTITION BY HASH ((substring(id FROM 1 FOR 64)::bigint))"
        )
        for number in range(8):
            connection.execute(
                f"CREATE TABLE t_bit_{number} PARTITION OF t_bit"
                f" FOR VALUES WITH (MODULUS 8, REMAINDER {number}) WITH (parallel_workers = 1024)".encode()
            )
        connection.execute(
            "INSERT INTO t_bit SELECT ('x' || md5(i::text))::bit(200) FROM generate_series(1, 20000) i"
        )
        connection.execute("ANALYZE")
    yield running
    running.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    running.execute(f"DROP DATABASE {PARTED} WITH (FORCE)")
    running.execute(f"DROP ROLE {ROLE}")


def arm_on(server: RealServer, database: str) -> Arm:
    place = AttachedServer(server.dsn, str(server.socket_directory), server.port, "postgres", server.pid)
    return Arm(Variant("default"), place, database)


@pytest.fixture
def arm(server: RealServer) -> Iterator[Arm]:
    running = arm_on(server, DATABASE)
    yield running
    running.close()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_degree_that_is_asked_for_is_planned_and_launched(arm: Arm, workers: int) -> None:
    settings = {**COUNT.session_settings, "max_parallel_workers_per_gather": str(workers)}
    assert COUNT.statement is not None
    asked = replace(COUNT, kind=replace(COUNT.statement, workers=workers), session_settings=settings)
    with does_not_raise():
        require_degree(arm, asked)


@pytest.mark.parametrize("load", [load for load in study_file.STUDY.loads if load != "partition-wise"])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_workload_of_the_study_can_have_every_degree(arm: Arm, load: str, workers: int) -> None:
    with does_not_raise():
        require_degree(arm, study_file.workloads(replace(TINY, chosen=(load,)))[f"{load}-{workers}"])


@pytest.mark.parametrize("load", ["count", "sort"])
def test_without_the_leader_every_degree_but_one_is_planned(arm: Arm, load: str) -> None:
    for workers in (0, 2, 4):
        cell = study_file.workloads(replace(TINY, chosen=(load,)))[f"{load}-{workers}"]
        require_degree(arm, with_settings(cell, parallel_leader_participation="off"))
    alone = study_file.workloads(replace(TINY, chosen=(load,)))[f"{load}-1"]
    require_degree(arm, alone)
    with pytest.raises(MeasurementError, match="workers planned: 0"):
        require_degree(arm, with_settings(alone, parallel_leader_participation="off"))


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_partitions_are_joined_and_counted_one_by_one_at_every_degree(
    server: RealServer, workers: int
) -> None:
    cell = study_file.workloads(replace(TINY, chosen=("partition-wise",)))[f"partition-wise-{workers}"]
    with closing(arm_on(server, PARTED)) as arm:
        require_degree(arm, cell)
    with psycopg.connect(server.dsn_for("postgres", PARTED)) as connection:
        for name, value in cell.session_settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        assert cell.statement is not None
        plan = [text.strip() for (text,) in connection.execute(b"EXPLAIN " + cell.statement.sql.encode())]
    assert sum("Join" in text for text in plan) == 8
    assert sum("Partial Aggregate" in text for text in plan) == 8
    if workers:
        assert f"Workers Planned: {workers}" in plan


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize(
    ("load", "nodes"),
    [("hash-join", ["Hash Join"]), ("aggregate", ["HashAggregate", "Partial HashAggregate"])],
)
def test_what_workers_share_is_what_it_is_called(
    arm: Arm, server: RealServer, load: str, nodes: list[str], workers: int
) -> None:
    cell = study_file.workloads(replace(TINY, chosen=(load,)))[f"{load}-{workers}"]
    assert require_degree(arm, cell) == ("Hash Join, Seq Scan" if load == "hash-join" else "Seq Scan")
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        for name, value in cell.session_settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        assert cell.statement is not None
        plan = "\n".join(text for (text,) in connection.execute(b"EXPLAIN " + cell.statement.sql.encode()))
    assert nodes[min(workers, len(nodes) - 1)] in plan
    assert ("Parallel Hash Join" in plan) == (load == "hash-join" and workers > 0)


INDEX = replace(TINY, chosen=("create-index",))


def test_workers_that_do_not_build_an_index_are_missed(arm: Arm) -> None:
    build = study_file.workloads(INDEX)["create-index-3"]
    with pytest.raises(MeasurementError) as caught:
        require_degree(arm, with_settings(build, max_parallel_workers="1"))
    assert caught.value.message == (
        "create-index, 3 workers: only 1 of 3 workers were launched on the server of default"
    )
    with pytest.raises(MeasurementError) as caught:
        require_degree(arm, with_settings(build, max_parallel_workers="0"))
    assert "only 0 of 3 workers were launched" in caught.value.message


def test_indexes_are_built_side_by_side_and_none_is_left(arm: Arm, server: RealServer) -> None:
    build = study_file.workloads(INDEX)["create-index-1-by-2"]
    with ThreadPoolExecutor(2) as both:
        for done in [both.submit(require_degree, arm, build) for _ in range(2)]:
            done.result()
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        indexes = connection.execute("SELECT count(*) FROM pg_index WHERE indrelid = 't_bit'::regclass")
        assert indexes.fetchone() == (0,)


def with_settings(workload: Workload, **settings: str) -> Workload:
    return replace(workload, session_settings={**workload.session_settings, **settings})


def test_workers_that_were_not_launched_are_missed(arm: Arm) -> None:
    with pytest.raises(MeasurementError) as caught:
        require_degree(arm, with_settings(COUNT, max_parallel_workers="0"))
    assert caught.value.message == (
        "count, 2 workers: only 0 of 2 workers were launched on the server of default"
    )


def test_a_plan_with_another_degree_is_refused_with_where_to_look(arm: Arm) -> None:
    with pytest.raises(MeasurementError) as caught:
        require_degree(arm, with_settings(COUNT, max_parallel_workers_per_gather="1"))
    assert caught.value.message == "count, 2 workers: wrong number planned on the server of default"
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("workers planned: 1; max_parallel_workers_per_gather = 1: ")


def test_a_query_that_workers_may_not_run_is_refused_with_the_reason(arm: Arm) -> None:
    unsafe = writing("SELECT count(*) FROM t_bit WHERE txid_current() > 0", 2)
    with pytest.raises(MeasurementError) as caught:
        require_degree(arm, unsafe)
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("workers planned: 0; ")
    assert "txid_current" in caught.value.detail
    assert (
        caught.value.hint
        == "pgdyno explain-degree shows the limit that decides the number of workers of a query"
    )


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        ("SELECT nextval('written')", "cannot execute nextval() in a read-only transaction"),
        ("DELETE FROM t_bit", "cannot execute DELETE in a read-only transaction"),
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELECT 1 / (count(*) - 20000) FROM t_bit", "division by zero"),
    ],
)
def test_a_query_that_writes_or_fails_is_refused_with_the_servers_words(
    arm: Arm, server: RealServer, sql: str, detail: str
) -> None:
    with pytest.raises(UsageError) as caught:
        require_degree(arm, replace(COUNT, kind=Statement(sql, 2)))
    assert caught.value.message == "the query fails (count, 2 workers)"
    assert caught.value.detail == detail
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        assert connection.execute("SELECT is_called FROM written").fetchone() == (False,)
        assert connection.execute("SELECT count(*) FROM t_bit").fetchone() == (20000,)


def writing(sql: str, workers: int) -> Workload:
    sizing = replace(TINY, given={"query": (sql,), "writes": ("",)})
    return study_file.workloads(sizing)[f"query-{workers}"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_query_that_may_write_has_its_workers_and_is_rolled_back(
    arm: Arm, server: RealServer, workers: int
) -> None:
    require_degree(arm, writing("CREATE TABLE copied AS TABLE t_bit", workers))
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        assert connection.execute("SELECT to_regclass('copied')").fetchone() == (None,)


def test_a_query_that_writes_is_refused_with_how_to_allow_it(arm: Arm) -> None:
    with pytest.raises(UsageError) as caught:
        require_degree(arm, replace(COUNT, kind=Statement("DELETE FROM t_bit", 2)))
    assert caught.value.hint == "with --writes the query may write; each execution is rolled back"
    with pytest.raises(UsageError) as caught:
        require_degree(arm, replace(COUNT, kind=Statement("SELECT id INTO TEMP copied FROM t_bit", 2)))
    assert caught.value.message == "the query writes (count, 2 workers)"
    assert caught.value.detail == "it was run once, and rolled back"


def test_a_statement_without_a_plan_is_refused(arm: Arm) -> None:
    with pytest.raises(UsageError) as caught:
        require_degree(arm, writing("CREATE TABLE IF NOT EXISTS t_bit AS SELECT 1 AS id", 0))
    assert caught.value.message == "this statement has no plan"


SLEEPER = """
import psycopg, sys
dsn, interval = sys.argv[1:]
connection = psycopg.connect(dsn, autocommit=True, application_name="sleeper")
connection.execute("SELECT set_config('client_connection_check_interval', %s, false)", [interval])
connection.execute("SELECT pg_sleep(600)")
"""
SLEEPING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sleeper' AND wait_event = 'PgSleep'"
)


def test_the_server_ends_a_query_whose_client_is_gone(arm: Arm, server: RealServer) -> None:
    """As after Ctrl-C: the load generator goes, and the server's process is in the middle of its query."""
    interval = COUNT.session_settings["client_connection_check_interval"]
    client = subprocess.Popen([sys.executable, "-c", SLEEPER, server.dsn_for("postgres"), interval])
    wait_for(lambda: server.execute(SLEEPING) == [(1,)])
    client.kill()
    client.wait()
    wait_for(lambda: server.execute(SLEEPING) == [(0,)])


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_statement_timeout_is_said(arm: Arm) -> None:
    slow = replace(COUNT, kind=Statement("SELECT pg_sleep(20)", workers=0))
    with pytest.raises(UsageError) as caught:
        require_degree(arm, with_settings(slow, statement_timeout="100ms"))
    assert caught.value.detail == "canceling statement due to statement timeout"
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("or statement_timeout of the role or the connection, if shorter")


def test_the_roles_own_time_limit_holds_as_it_does_for_the_load(server: RealServer) -> None:
    server.execute("CREATE ROLE hasty LOGIN SUPERUSER")
    server.execute("ALTER ROLE hasty SET statement_timeout = '1s'")
    dsn = server.dsn_for("hasty")
    place = AttachedServer(dsn, str(server.socket_directory), server.port, "hasty", server.pid)
    with closing(Arm(Variant("default"), place, DATABASE)) as arm, pytest.raises(UsageError) as caught:
        require_degree(arm, replace(COUNT, kind=Statement("SELECT pg_sleep(20)", workers=0)))
    server.execute("DROP ROLE hasty")
    assert caught.value.detail == "canceling statement due to statement timeout"


def test_a_query_that_lacks_room_at_one_degree_is_told_with_that_degree(arm: Arm) -> None:
    sort = study_file.workloads(replace(TINY, chosen=("sort",)))["sort-2"]
    with pytest.raises(ServerError) as caught:
        require_degree(arm, with_settings(sort, work_mem="64kB", temp_file_limit="100kB"))
    assert caught.value.message == "the query fails (sort, 2 workers)"
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("temporary file size exceeds ")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("raise temp_file_limit")


@pytest.fixture(scope="module")
def measured(home: Path, pg18_bin: Path) -> Experiment:
    """Some degrees once, long enough for the server to report its workers: that takes it up to a second."""
    design = replace(
        study_file.STUDY.design, rounds=1, block_s=1.5, slice_s=1.5, thresholds=WHATEVER_ELSE_RUNS
    )
    cells = study_file.workloads(replace(TINY, chosen=("count", "bitand", "create-index", "partition-wise")))
    context = StudyContext(Variant("default", study_file.settings(TINY)), SOME, design, sizing=TINY)
    return measure(
        study_file.study(context), Conditions(embedded(), cells, design, as_booted=AS_BOOTED_GIVEN), Lines()
    )


def test_every_degree_has_a_rate_and_all_of_its_workers(measured: Experiment) -> None:
    assert sorted(block.workload for block in measured.blocks) == sorted(SOME)
    for block in measured.blocks:
        values, workers = block.arms[0].values, measured.cells[block.workload].workers
        assert values["throughput_tps"] > 0
        is_counted = workers and not block.workload.startswith("create-index")
        assert values.get("parallel_workers_launched_share") == (1.0 if is_counted else None), block.workload


def test_what_a_study_does_not_take_is_refused_before_anything_runs(home: Path) -> None:
    for arguments, message in (
        (("clients", "--query", "SELECT 1"), "the study clients takes no --query"),
        (("parallel-degree", "--query", "SELECT 1; SELECT 2"), "there is more than one statement"),
        (("parallel-degree", "--query", "MERGE INTO t"), "MERGE is never planned with workers"),
        (("parallel-degree", "--query", "CREATE TABLE t AS SELECT 1"), "the query writes"),
        (("parallel-degree", "--writes"), "--writes requires --query"),
        (("parallel-degree", "--protocol", "simple"), "the study parallel-degree takes no --protocol"),
        (("noise-floor", "--protocol", "simple"), "the study noise-floor takes no --protocol"),
        (("clients", "--writes"), "the study clients takes no --writes"),
        (("parallel-degree", "--query", "SELECT $1"), "the statement has parameters such as $1"),
        (("parallel-degree", "--preset", "tape"), 'the study parallel-degree has no preset "tape"'),
        (("parallel-degree", "--workload", "pgbench-select"), 'this study has no workload "pgbench-select"'),
    ):
        refused = CliRunner().invoke(cli, ["run", *arguments, "--embedded"])
        assert isinstance(refused.exception, UsageError), arguments
        assert refused.exception.exit_code == 2
        assert refused.exception.message.startswith(message)


@pytest.mark.usefixtures("home", "pg18_bin")
def test_a_users_query_that_fails_ends_the_measuring_with_its_error() -> None:
    sizing = replace(TINY, given={"query": ("SELECT nextval('nowhere')",)})
    cells, design = study_file.workloads(sizing), study_file.STUDY.design
    context = StudyContext(
        Variant("default", study_file.settings(sizing)), ("query-0",), design, sizing=sizing
    )
    with pytest.raises(UsageError) as caught:
        measure(
            study_file.study(context),
            Conditions(embedded(), cells, design, as_booted=AS_BOOTED_GIVEN),
            Lines(),
        )
    assert caught.value.message == "the query fails (query, 0 workers)"
    assert caught.value.detail == 'relation "nowhere" does not exist'


@pytest.mark.long  # it loads as much data as the machine's CPUs are busy with for a while
def test_a_users_query_that_fails_ends_the_run_with_its_error(home: Path, pg18_bin: Path) -> None:
    query = ("--query", "SELECT nextval('nowhere')", "--clients", "1", "--blocks", "1")
    refused = pgdyno("run", "parallel-degree", "--embedded", *query)
    assert refused.returncode == 2
    assert "ERROR:  the query fails (query, " in refused.stderr
    assert 'DETAIL:  relation "nowhere" does not exist' in refused.stderr


def on_server(
    server: RealServer, *arguments: str, query: str = "SELECT count(*) FROM t_bit", more: str = ""
) -> CompletedProcess[str]:
    dsn = f"{server.dsn_for(ROLE, DATABASE)} {more}"
    return pgdyno("run", "parallel-degree", "--dsn", dsn, "--query", query, *arguments)


on_18_unless_long = pytest.mark.parametrize(
    "server", [pytest.param("pg15", marks=pytest.mark.long), "pg18"], indirect=True
)
"""Every degree is run on both majors by other tests; what else these commands do is the same on both."""


@on_18_unless_long
def test_a_running_server_is_not_loaded_unless_that_is_allowed(server: RealServer, home: Path) -> None:
    refused = on_server(server)
    assert refused.returncode == 4
    assert "ERROR:  the measurement puts load on the server, and load was not allowed" in refused.stderr
    for arguments, message in (
        (("--embedded", "--preset", "disk"), "it takes no --embedded, --preset"),
        (("--workload", "sort"), "it takes no --workload"),
    ):
        refused = on_server(server, "--allow-load", *arguments)
        assert refused.returncode == 2
        assert message in refused.stderr
    refused = on_server(server, "--allow-load", query="SELECT nextval('written')")
    assert refused.returncode == 2
    assert "ERROR:  the server plans no parallel workers for this query" in refused.stderr
    assert "nextval" in refused.stderr
    refused = on_server(server, "--allow-load", "--clients", "1000")
    assert refused.returncode == 2
    assert "ERROR:  the server has too few free workers for this query" in refused.stderr
    assert "DETAIL:  concurrent clients: 1000; workers free now: 7" in refused.stderr


@on_18_unless_long
def test_a_query_is_measured_on_a_running_server_as_it_is(server: RealServer, home: Path) -> None:
    before = server.execute("SELECT count(*) FROM pg_database")
    done = on_server(server, "--allow-load", "--clients", "1", "--blocks", "1", "--block", "300ms", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    # On two CPUs five degrees, 0 to 4; on more the first round takes 0, 2, 4 and the highest.
    assert document["blocks"] >= 4
    assert any(note.startswith("measured on a running server as it is") for note in document["notes"])
    assert server.execute("SELECT count(*) FROM pg_database") == before


@on_18_unless_long
def test_a_query_that_writes_is_measured_on_a_running_server_which_it_leaves_as_it_was(
    server: RealServer, home: Path
) -> None:
    query, more = "CREATE TABLE copied AS TABLE mine", with_own_table(server)
    refused = on_server(server, "--writes", query=query, more=more)
    assert refused.returncode == 4
    assert "rolled back each time" in refused.stderr
    asked = ("--allow-load", "--clients", "1", "--blocks", "1", "--block", "300ms", "--json")
    refused = on_server(server, *asked, query=query, more=more)
    assert refused.returncode == 2, refused.stderr
    assert "ERROR:  the query writes" in refused.stderr
    assert "with --writes the query may write" in refused.stderr
    done = on_server(server, "--writes", *asked, query=query, more=more)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks"] >= 4
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        assert connection.execute("SELECT to_regclass('app.copied')").fetchone() == (None,)


def with_own_table(server: RealServer) -> str:
    """Make a table, and return the part of a connection string that finds it."""
    with psycopg.connect(server.dsn_for(ROLE, DATABASE), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS app")
        connection.execute("CREATE TABLE IF NOT EXISTS app.mine WITH (parallel_workers = 9) AS TABLE t_bit")
    return "options='-c search_path=app'"


def test_degrees_that_the_free_workers_are_too_few_for_are_left_out(server: RealServer, home: Path) -> None:
    """Of the eight processes that a server has by default, replication's launcher is one."""
    sizing = Sizing({"query": ("SELECT count(*) FROM t_bit",)}, machine=Machine(2, 0), clients=2)
    surveyed = look(server.dsn_for(ROLE, DATABASE), sizing)
    assert (surveyed.degrees, surveyed.left_out) == ((0, 1, 2, 3), (4,))


def test_the_size_of_the_data_is_that_of_the_tables_that_the_query_reads(
    server: RealServer, home: Path
) -> None:
    sizing = Sizing({"query": ("SELECT count(*) FROM t_bit a, t_bit b",)}, machine=Machine(2, 0), clients=1)
    surveyed = look(server.dsn_for(ROLE, DATABASE), sizing)
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        (size_bytes,) = connection.execute("SELECT pg_relation_size('t_bit')").fetchone() or (0,)
    assert surveyed.data_set.size_bytes == size_bytes


@pytest.mark.long  # a query that writes has them as well
def test_the_load_has_the_settings_of_the_connection_string(server: RealServer, home: Path) -> None:
    asked = ("--allow-load", "--clients", "1", "--blocks", "1", "--block", "300ms", "--json")
    done = on_server(server, *asked, query="TABLE mine", more=with_own_table(server))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks"] > 0
