"""``pgdyno explain-degree`` on real servers: cases whose degree follows from how they are made.

The number of workers is checked with a plain EXPLAIN, and what is advised is done, and explained again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, wait_until
from tests.integration.degree_cases import DEBUG, MADE, SIZES, Case, cases, settings

from pgdyno.base.errors import PrivilegeError, UsageError
from pgdyno.plan.degrees.degree_text import headline
from pgdyno.plan.explain_degree import explain_degree_of
from pgdyno.postgres.parallel_degree import Degree, DegreeStep, Limit

pytestmark = pytest.mark.server

DATABASE, ROLE = "degree", "degree_owner"
POOL = re.compile(r"max_parallel_workers =|max_worker_processes =")
WORKERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
STRUCTURAL = frozenset(
    {Limit.UNSAFE_FUNCTION, Limit.RESTRICTED_FUNCTION, Limit.ROW_LOCKS, Limit.WRITES, Limit.NO_TABLE}
    | {Limit.KIND_OF_SCAN, Limit.SERIAL_IS_CHEAPER, Limit.TEMPORARY_TABLE, Limit.FOREIGN_TABLE}
)


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute(f"CREATE ROLE {ROLE} LOGIN IN ROLE pg_monitor, pg_read_all_data")
    running.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    with psycopg.connect(running.dsn_for(ROLE, DATABASE), autocommit=True) as connection:
        for statements in MADE:
            connection.execute(statements.encode())
        connection.execute("VACUUM ANALYZE")
    yield running
    running.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    running.execute(f"DROP ROLE {ROLE}")


def dsn_of(server: RealServer, wanted: Mapping[str, str]) -> str:
    """Return a DSN of the tables' owner, whose sessions have these settings."""
    names = {DEBUG: DEBUG if major_of(server) >= 16 else "force_parallel_mode"}
    options = " ".join(f"-c {names.get(name, name)}={value}" for name, value in wanted.items())
    return f"{server.dsn_for(ROLE, DATABASE)} options='{options}'"


def major_of(server: RealServer) -> int:
    return int((server.data_directory / "PG_VERSION").read_text())


def explained_workers(connection: psycopg.Connection, sql: str) -> int:
    """Return the most workers of a node by a plain EXPLAIN."""
    rows = connection.execute(f"EXPLAIN {sql}".encode()).fetchall()
    planned = [int(text.split(":")[1]) for (text,) in rows if "Workers Planned:" in text]
    return max(planned, default=0)


def workers_after(steps: Iterable[DegreeStep], connection: psycopg.Connection, sql: str) -> int:
    """Do what is advised, but for what takes a restart, and return the workers that are planned then."""
    for step in steps:
        if not step.needs_restart:
            connection.execute(step.statement.encode())
    planned = explained_workers(connection, sql)
    connection.rollback()  # settings and the options of tables go with the transaction
    return planned


def test_there_are_enough_cases_and_no_two_are_the_same() -> None:
    names = [case.name for case in cases()]
    assert len(names) > 60
    assert len(set(names)) == len(names)


def test_the_tables_have_the_pages_that_the_cases_count_on(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres", DATABASE)) as connection:
        found = [
            connection.execute("SELECT pg_relation_size(%s::regclass) / 8192", (f"pages_{pages}",)).fetchone()
            for pages in SIZES
        ]
        index = connection.execute("SELECT pg_relation_size('indexed_i_idx') / 8192").fetchone()
    assert found == [(pages,) for pages in SIZES]
    assert index == (276,)


def on_majors(case: Case) -> Iterator[Any]:
    """Try a case on PostgreSQL 18, and on 15 as well if they name its settings otherwise."""
    yield pytest.param("pg18", case, id=f"pg18-{case}")
    marks = () if DEBUG in case.settings else (pytest.mark.long,)
    yield pytest.param("pg15", case, id=f"pg15-{case}", marks=marks)


@pytest.mark.parametrize(
    ("server", "case"), [one for case in cases() for one in on_majors(case)], indirect=["server"]
)
def test_what_decides_is_named_and_the_advice_leads_there(server: RealServer, case: Case) -> None:
    dsn = dsn_of(server, case.settings)
    degree = explain_degree_of(case.sql, case.workers, dsn)
    assert tuple(cause.limit for cause in degree.causes) == case.limits, headline(degree)
    if case.launchable is not None:
        assert (degree.launchable, degree.pool_limit) == (case.launchable, case.pool_limit)
    with psycopg.connect(dsn) as connection:
        hidden = case.settings.get(DEBUG) == "regress"
        assert degree.planned == case.planned == explained_workers(connection, case.sql) + hidden
        if case.workers is not None:
            check_advice(degree, case, connection)


def check_advice(degree: Degree, case: Case, connection: psycopg.Connection) -> None:
    assert degree.advice is not None
    if STRUCTURAL.intersection(case.limits):
        assert degree.advice.obstacle is not None
        assert degree.advice.steps == ()
        return
    assert degree.advice.obstacle is None
    assert workers_after(degree.advice.steps, connection, case.sql) == case.workers, degree.advice
    for_the_plan = [step for step in degree.advice.steps if not POOL.search(step.statement)]
    for needed in for_the_plan:  # no statement can be left out
        rest = [step for step in for_the_plan if step is not needed]
        assert workers_after(rest, connection, case.sql) != case.workers, needed


def test_a_temporary_table_is_never_shared(server: RealServer) -> None:
    with psycopg.connect(dsn_of(server, {}), autocommit=True) as owner:
        owner.execute(
            "CREATE TEMP TABLE mine AS SELECT i, repeat('x', 200) AS f FROM generate_series(1, 9999) i"
        )
        ((schema,),) = owner.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
        sql = f"SELECT count(*) FROM {schema}.mine"  # noqa: S608 — the server's own name
        degree = explain_degree_of(sql, 2, dsn_of(server, settings()))
    assert [cause.limit for cause in degree.causes] == [Limit.TEMPORARY_TABLE]
    assert headline(degree) == f"0 workers planned: the temporary table {schema}.mine decided"
    assert degree.advice is not None
    assert degree.advice.obstacle is not None


def test_a_foreign_table_is_not_shared(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres", DATABASE), autocommit=True) as connection:
        known = connection.execute("SELECT FROM pg_available_extensions WHERE name = 'file_fdw'").fetchall()
        if not known:
            pytest.skip("this PostgreSQL has no file_fdw")
        connection.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
        connection.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        connection.execute(
            "CREATE FOREIGN TABLE far (line text) SERVER files OPTIONS (filename '/etc/passwd')"
        )
        degree = explain_degree_of("SELECT count(*) FROM far", None, dsn_of(server, settings()))
        connection.execute("DROP SERVER files CASCADE")
    assert [cause.limit for cause in degree.causes] == [Limit.FOREIGN_TABLE]


def test_no_option_of_a_system_catalog_is_advised(server: RealServer) -> None:
    wanted = settings(min_parallel_table_scan_size="64kB", parallel_tuple_cost=0, parallel_setup_cost=0)
    degree = explain_degree_of("SELECT sum(length(prosrc)) FROM pg_proc", None, dsn_of(server, wanted))
    assert [cause.limit for cause in degree.causes] == [Limit.TABLE_SIZE]
    assert degree.causes[0].remedy == "SET min_parallel_table_scan_size to a lower value, for more workers"


def test_the_highest_cost_that_lets_workers_be_planned_is_true(server: RealServer) -> None:
    """A tenth more than what is named, and there are none."""
    sql = "SELECT count(*) FROM pages_1000"
    degree = explain_degree_of(sql, None, dsn_of(server, settings(parallel_setup_cost=500)))
    (cause,) = degree.causes
    assert cause.remedy is not None
    name, _, value = cause.remedy.removeprefix("SET ").partition(" = ")
    assert (name, float(value) > 0) == ("parallel_setup_cost", True)
    for factor, is_parallel in ((1.0, True), (1.1, False)):
        wanted = settings(parallel_setup_cost=str(float(value) * factor))
        with psycopg.connect(dsn_of(server, wanted)) as connection:
            assert (explained_workers(connection, sql) > 0) is is_parallel


def test_every_gather_is_explained_by_itself(server: RealServer) -> None:
    sql = "SELECT (SELECT count(*) FROM pages_1000), count(*) FROM pages_100"
    degree = explain_degree_of(sql, None, dsn_of(server, settings()))
    assert [(one.gather.workers, one.tables[0].name) for one in degree.gathers] == [
        (5, "public.pages_1000"),
        (3, "public.pages_100"),
    ]
    assert "all Gathers of a query take their workers from the same pools" in degree.notes


def test_workers_of_others_are_missing_from_the_pools(server: RealServer) -> None:
    """A query that sleeps keeps its workers."""
    holding = dsn_of(server, settings(max_parallel_workers_per_gather=3, max_parallel_workers=8))
    wanted = dsn_of(server, settings(max_parallel_workers=4))
    with psycopg.connect(holding, autocommit=True) as waiting, ThreadPoolExecutor(1) as beside:
        asleep = beside.submit(waiting.execute, "SELECT sum(length(pg_sleep(60)::text)) FROM pages_1000")
        wait_until(lambda: server.execute(WORKERS) == [(3,)])
        degree = explain_degree_of("SELECT count(*) FROM pages_1000", None, wanted)
        waiting.cancel_safe(timeout=60)
        with pytest.raises(psycopg.errors.QueryCanceled):
            asleep.result()
    wait_until(lambda: server.execute(WORKERS) == [(0,)])
    assert degree.pools.parallel_in_use.or_none() == 3
    assert (degree.planned, degree.launchable, degree.pool_limit) == (5, 1, Limit.POOL)
    assert headline(degree).endswith("1 of them can be launched now, limited by max_parallel_workers = 4")


def test_statements_that_have_no_degree_are_refused(server: RealServer) -> None:
    dsn = dsn_of(server, {})
    for sql, message in (
        ("INSERT INTO pages_30 SELECT * FROM pages_100", "INSERT is never planned with workers"),
        ("DELETE FROM pages_30", "DELETE is never planned with workers"),
        ("UPDATE pages_30 SET i = 1", "UPDATE is never planned with workers"),
        ("SELEC 1", "the statement cannot be parsed"),
        ("DROP TABLE pages_30", "the statement cannot be parsed"),
        ("SELECT * FROM nowhere", "the server cannot plan this statement"),
    ):
        with pytest.raises(UsageError) as caught:
            explain_degree_of(sql, None, dsn)
        assert caught.value.message == message
        assert caught.value.exit_code == 2


def test_the_place_of_a_mistake_is_counted_in_the_statement_itself(server: RealServer) -> None:
    with pytest.raises(UsageError) as caught:
        explain_degree_of("SELECT count(*) FRM pages_30", None, dsn_of(server, {}))
    assert caught.value.detail == 'syntax error at or near "pages_30", at character 21'


def test_an_ordinary_role_learns_all_but_the_pools(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres", DATABASE), autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON pages_300 TO reader")
        dsn = server.dsn_for("reader", DATABASE)
        with pytest.raises(PrivilegeError):
            explain_degree_of("SELECT count(*) FROM pages_100", None, dsn)
        degree = explain_degree_of("SELECT count(*) FROM pages_300", 2, dsn)
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")
    assert (degree.launchable, degree.pool_limit) == (None, None)
    assert not degree.pools.parallel_in_use.is_known


def test_the_command_says_it_in_text_and_as_json(server: RealServer) -> None:
    dsn = dsn_of(server, settings(max_parallel_workers_per_gather=4))
    arguments = ("explain-degree", "--dsn", dsn, "--workers", "7", "SELECT count(*) FROM pages_1000")
    text, document = pgdyno(*arguments), pgdyno(*arguments, "--json")
    assert text.stdout.splitlines()[0] == (
        "4 workers planned: max_parallel_workers_per_gather = 4 decided"
    ), text.stderr
    assert "  ALTER TABLE public.pages_1000 SET (parallel_workers = 7);" in text.stdout
    degree = json.loads(document.stdout)["degree"]
    assert [cause["limit"] for cause in degree["causes"]] == ["max_parallel_workers_per_gather"]
    assert degree["gathers"][0]["uncapped_workers"] == 5


def test_a_data_directory_leads_to_its_server(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", ROLE)
    degree = explain_degree_of("SELECT count(*) FROM pg_class", None, None, server.data_directory)
    assert degree.version.startswith(str(major_of(server)))
    assert [table.name for table in degree.tables] == ["pg_catalog.pg_class"]


def test_the_database_of_a_data_directory_can_be_named(server: RealServer) -> None:
    where = ("explain-degree", "--pgdata", str(server.data_directory), "SELECT count(*) FROM pages_300")
    asked = pgdyno(*where, "--dbname", DATABASE, PGUSER=ROLE)
    assert asked.returncode == 0, asked.stderr
    assert "public.pages_300" in asked.stdout
    missed = pgdyno(*where, "--dbname", "postgres", PGUSER=ROLE)
    assert missed.returncode == 2
    assert 'DETAIL:  relation "pages_300" does not exist' in missed.stderr
    assert 'names are looked up in database "postgres" with the role\'s own search_path' in missed.stderr


def test_a_named_database_stands_for_that_of_the_dsn(server: RealServer) -> None:
    sql = "SELECT count(*) FROM pages_300"
    degree = explain_degree_of(sql, None, server.dsn_for(ROLE), database=DATABASE)
    assert [table.name for table in degree.tables] == ["public.pages_300"]


def test_a_number_that_no_server_takes_is_refused() -> None:
    refused = pgdyno("explain-degree", "--workers", "1025", "SELECT 1")
    assert refused.returncode == 2
    assert "1025 is not in the range 0<=x<=1024" in refused.stderr


def test_more_workers_than_processes_are_launched_after_the_restart_that_is_advised(
    scratch_pg18: RealServer,
) -> None:
    scratch_pg18.execute("CREATE TABLE counted AS SELECT generate_series(1, 300000) AS i")
    scratch_pg18.execute("ANALYZE counted")
    sql = "SELECT count(*) FROM counted"
    advice = explain_degree_of(sql, 10, scratch_pg18.reading_dsn()).advice
    assert advice is not None
    assert [step.needs_restart for step in advice.steps].count(True) == 1
    with psycopg.connect(scratch_pg18.dsn, autocommit=True) as connection:
        for step in advice.steps:
            is_of_session = step.statement.startswith("SET ")
            connection.execute(f"{'ALTER SYSTEM ' if is_of_session else ''}{step.statement}".encode())
    scratch_pg18.restart()
    rows = scratch_pg18.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {sql}")
    assert [text.strip() for (text,) in rows if "Workers" in text] == [
        "Workers Planned: 10",
        "Workers Launched: 10",
    ]
