"""``pgdyno explain-degree --workload`` on real servers, with tables whose statistics are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_explained import DATABASE, dsn_of, explained, middle_of, shop_in, workload
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    ColumnValue,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    with shop_in(request.getfixturevalue(request.param)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    write_workload_file(path, workload())
    return path


def planned_workers(server: RealServer, sql: str, *values: str) -> int:
    """Return the workers by a plain EXPLAIN."""
    with psycopg.connect(
        server.dsn_for("postgres", DATABASE), cursor_factory=psycopg.ClientCursor
    ) as connection:
        connection.execute("SET search_path = shop")
        rows = connection.execute(f"EXPLAIN {sql}".encode(), values).fetchall()
    return max((int(text.split(":")[1]) for (text,) in rows if "Workers Planned:" in text), default=0)


def test_all_statements_are_listed_with_their_workers(server: RealServer, file: Path) -> None:
    found = explained(server, file)["degrees"]
    assert [one["statement"] for one in found][:4] == ["sum", "by-day", "some", "in-state"]
    by_name = {one["statement"]: one for one in found}
    assert by_name.keys() == {one.name for one in workload().statements}
    assert sum(one["share"] for one in found) == pytest.approx(1)
    assert by_name["sum"]["share"] == 0.5
    amount = middle_of(server, "amount")
    expected = {
        "sum": planned_workers(server, "SELECT sum(amount) FROM orders WHERE amount > %s", amount),
        "by-day": planned_workers(server, "SELECT count(*) FROM events WHERE at = '2026-02-10'"),
        "first": planned_workers(server, "SELECT id FROM orders ORDER BY filler LIMIT 15"),
        "returned": planned_workers(server, "SELECT count(*) FROM orders WHERE amount = %s", amount),
        "read": 0,
        "number": 0,
    }
    assert {name: by_name[name]["degree"]["planned"] for name in expected} == expected
    assert min(expected[name] for name in ("sum", "by-day", "first", "returned")) > 0
    never = {name for name, one in by_name.items() if one["is_never"]}
    assert never == {"begin", "write", "commit"}
    why = {name: one["why_none"] for name, one in by_name.items() if one["degree"] is None}
    assert 'relation "gone" does not exist' in why["gone"]
    assert "the server shows no statistics for shop.unknown.id: run ANALYZE" in why["unknown"]
    assert why["uncalled"] == 'no transaction calls "uncalled", so its parameters are unknown'
    assert why.keys() == {"gone", "unknown", "uncalled"} | never


def test_the_table_says_the_limits_and_where_it_holds(server: RealServer, file: Path) -> None:
    done = pgdyno("explain-degree", "--dsn", dsn_of(server), "--workload", str(file))
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: " ".join(line.split()) for line in done.stdout.splitlines() if line.strip()}
    assert rows["sum"] == "sum 50.0 % 2 max_parallel_workers_per_gather = 2"
    assert rows["number"].startswith("number 1.0 % 0 the parallel-unsafe function nextval(regclass)")
    assert "never with workers: 3 statements more, 2.0\N{NO-BREAK SPACE}%" in done.stdout
    assert "not planned: 1 statement that cannot be replayed" in done.stdout
    assert "typical values from the planner's statistics" in done.stdout
    assert "UPDATE" not in done.stdout


def test_the_server_is_only_asked(server: RealServer, file: Path) -> None:
    scanned = "SELECT sum(seq_scan) FROM pg_stat_user_tables"  # the planner itself looks into indexes
    server.await_end_of_clients(DATABASE)  # at which they tell what they have counted
    before = server.execute(scanned, DATABASE)
    explained(server, file)
    server.await_end_of_clients(DATABASE)
    assert server.execute(scanned, DATABASE) == before
    assert server.execute("SELECT is_called FROM shop.numbers", DATABASE) == [(False,)]


def test_a_named_database_stands_before_the_workload_s(server: RealServer, file: Path) -> None:
    for given in (("--dsn", server.reading_dsn()), ("--dsn", dsn_of(server), "--dbname", "postgres")):
        done = pgdyno("explain-degree", *given, "--workload", str(file), "--json")
        assert done.returncode == 1
        assert 'no statement of "shop" can be planned in database "postgres"' in done.stderr
        why = 'the database "postgres" has no column shop.orders.amount'
        assert f'DETAIL:  sum: no typical value for $1 of "sum": {why}' in done.stderr
        assert "HINT:  choose a different database with --dbname" in done.stderr


def test_a_data_directory_leads_to_the_workload_s_database(server: RealServer, file: Path) -> None:
    where = ("--pgdata", str(server.data_directory))
    server.reading_dsn()
    arguments = ("explain-degree", *where, "--workload", str(file), "--json", "sum")
    done = pgdyno(*arguments, PGUSER="reading")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["degree"]["planned"] == 2


def test_mistakes_are_said(server: RealServer, file: Path, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = pgdyno("explain-degree", "--dsn", dsn_of(server), *arguments)
        assert done.returncode == 2, done.stdout
        return done.stderr

    taken = ("--workload", str(file))
    assert "--workers requires one statement" in refused(*taken, "--workers", "3")
    misspelt = refused(*taken, "in-stat")
    assert 'the workload "shop" has no statement "in-stat"' in misspelt
    assert 'HINT:  did you mean "in-state"? without a name, all statements are listed' in misspelt
    assert "UPDATE is never planned with workers" in refused(*taken, "write")
    assert "BEGIN is never planned with workers" in refused(*taken, "begin")
    assert 'names are looked up in database "explained" with search_path = shop' in refused(*taken, "gone")
    assert "there is no statement" in refused()
    assert f'could not read "{tmp_path / "none"}"' in refused("--workload", str(tmp_path / "none"))
    strange = replace(workload(), search_path='shop, "')
    write_workload_file(file, strange)
    done = pgdyno("explain-degree", "--dsn", dsn_of(server), *taken)
    assert done.returncode == 1
    assert 'invalid value for parameter "search_path"' in done.stderr


def test_a_role_that_may_not_read_all_gets_a_reason_for_each(server: RealServer, file: Path) -> None:
    server.execute("CREATE ROLE stranger LOGIN")
    dsn = server.dsn_for("stranger", DATABASE)
    try:
        closed = pgdyno("explain-degree", "--dsn", dsn, "--workload", str(file))
        server.execute("GRANT USAGE ON SCHEMA shop TO stranger", DATABASE)
        server.execute("GRANT SELECT (filler, id) ON shop.orders TO stranger", DATABASE)
        done = pgdyno("explain-degree", "--dsn", dsn, "--workload", str(file), "--json")
    finally:
        server.execute("DROP OWNED BY stranger", DATABASE)
        server.execute("DROP ROLE stranger")
    assert closed.returncode == 1
    assert 'no statement of "shop" can be planned in database "explained"' in closed.stderr
    assert done.returncode == 0, done.stderr
    found = {one["statement"]: one for one in json.loads(done.stdout)["degrees"]}
    assert {name for name, one in found.items() if one["degree"]} == {"first", "number"}
    assert "the server shows no statistics for shop.orders.amount" in found["sum"]["why_none"]
    assert found["read"]["why_none"] == (
        "the role may not explain this statement: permission denied for table orders"
    )


def test_columns_of_views_have_the_statistics_of_the_tables(server: RealServer, tmp_path: Path) -> None:
    views = {
        "paid": ("SELECT count(*) FROM paid WHERE amount = $1", "shop.paid.amount"),
        "numbered": ("SELECT count(*) FROM numbered WHERE n = $1", "shop.numbered.n"),
    }
    seen = Seen(calls=1, time_ms=1.0, rows=1, blocks=1, wal_records=0)
    shop = replace(
        workload(),
        statements=tuple(CapturedStatement(name, sql, seen) for name, (sql, _) in views.items()),
        transactions=tuple(
            CapturedTransaction(1, (CapturedCall(name, 1.0, (ColumnValue(column),)),))
            for name, (_, column) in views.items()
        ),
    )
    write_workload_file(tmp_path / "views.toml", shop)
    server.execute("CREATE VIEW shop.paid AS SELECT id, amount FROM shop.orders", DATABASE)
    try:
        listed = explained(server, tmp_path / "views.toml")["degrees"]
        paid = explained(server, tmp_path / "views.toml", "paid")["degree"]
    finally:
        server.execute("DROP VIEW shop.paid", DATABASE)
    assert f"planned with $1 = '{middle_of(server, 'amount')}', " in paid["notes"][-1]
    assert {one["statement"]: one["why_none"] for one in listed if one["degree"] is None} == {
        "numbered": 'no typical value for $1 of "numbered": shop.numbered.n is computed by its view, so its '
        "statistics are unknown"
    }
