"""``pgdyno explain-degree --workload`` on real servers, with tables whose statistics are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

from pgdyno.capture.quoted_texts import array_text, quoted_text
from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Omitted,
    ReturnedValue,
    SameValue,
    Seen,
)
from pgdyno.store.workload_file import write_workload_file

pytestmark = pytest.mark.server

DATABASE = "explained"
_MADE = (
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.orders (id int PRIMARY KEY, amount int, state text, filler text)",
    "CREATE VIEW shop.numbered AS SELECT generate_series(1, 60000) AS n",
    "INSERT INTO shop.orders SELECT n, n % 5000, 'o''r\\' || n % 3, repeat('x', 100) FROM shop.numbered",
    "CREATE TABLE shop.events (at date, what text) PARTITION BY RANGE (at)",
    "CREATE TABLE shop.small PARTITION OF shop.events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
    "CREATE TABLE shop.large PARTITION OF shop.events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
    "INSERT INTO shop.events SELECT '2026-01-15', 'x' FROM generate_series(1, 10)",
    "INSERT INTO shop.events SELECT '2026-02-10', repeat('y', 100) FROM generate_series(1, 60000)",
    "CREATE TABLE shop.unknown (id int)",
    "INSERT INTO shop.unknown VALUES (1)",
    "CREATE SEQUENCE shop.numbers",
    "ANALYZE shop.orders",
    "ANALYZE shop.small",  # autovacuum analyses partitions, and never the table above them
    "ANALYZE shop.large",
    f"ALTER DATABASE {DATABASE} SET min_parallel_table_scan_size = '64kB'",
    f"ALTER DATABASE {DATABASE} SET parallel_setup_cost = 10",
)
_KEY, _AMOUNT = ColumnValue("shop.orders.id"), ColumnValue("shop.orders.amount")


def _statement(name: str, sql: str, time_ms: float, *, is_prepared: bool = True) -> CapturedStatement:
    return CapturedStatement(name, sql, Seen(10, time_ms, 10, 10, 0), is_prepared)


def workload() -> CapturedWorkload:
    """A shop's, as it is captured: its tables are in the search path."""
    alone = (
        ("sum", "SELECT sum(amount) FROM orders WHERE amount > $1", 50.0, (_AMOUNT,)),
        ("by-day", "SELECT count(*) FROM events WHERE at = $1", 20.0, (ColumnValue("shop.events.at"),)),
        (
            "some",
            "SELECT max(filler) FROM orders WHERE amount = ANY ($1)",
            10.0,
            (ArrayOf("shop.orders.amount", 3),),
        ),
        (
            "in-state",
            "SELECT count(*) FROM orders WHERE state = $1 /* $1 */",
            5.0,
            (ColumnValue("shop.orders.state"),),
        ),
        ("first", "SELECT id FROM orders ORDER BY filler LIMIT $1", 4.0, (Between(10, 20),)),
        ("gone", "SELECT count(*) FROM gone", 3.0, ()),
        ("unknown", "SELECT count(*) FROM unknown WHERE id = $1", 2.0, (ColumnValue("shop.unknown.id"),)),
        ("number", "SELECT nextval('numbers'), count(*) FROM orders", 1.0, ()),
    )
    block = (
        CapturedCall("begin", 1.0),
        CapturedCall("read", 1.0, (_KEY,)),
        CapturedCall("range", 1.0, (SameValue(1, "read"), SameValue(1, None, 59000))),
        CapturedCall("returned", 1.0, (ReturnedValue(2, "read"),)),
        CapturedCall("write", 1.0, (_KEY,)),
        CapturedCall("commit", 1.0),
    )
    return CapturedWorkload(
        "shop", "18", 1, DATABASE, 10.0, 1,
        (
            *(_statement(name, sql, time_ms) for name, sql, time_ms, _ in alone),
            _statement("begin", "BEGIN", 0.0, is_prepared=False),
            _statement("read", "SELECT id, amount FROM orders WHERE id = $1", 1.0),
            _statement("range", "SELECT sum(amount) FROM orders WHERE id BETWEEN $1 - 30000 AND $2", 1.0),
            _statement("returned", "SELECT count(*) FROM orders WHERE amount = $1", 1.0),
            _statement("write", "UPDATE orders SET amount = 1 WHERE id = $1", 2.0),
            _statement("commit", "COMMIT", 0.0, is_prepared=False),
            _statement("uncalled", "SELECT count(*) FROM orders WHERE id > $1", 0.0),
        ),
        (
            *(CapturedTransaction(1.0, (CapturedCall(name, 1.0, its),)) for name, _, _, its in alone),
            CapturedTransaction(1.0, block),
        ),
        omitted=(Omitted("COPY …", "its rows are not in the server's statistics", Seen(1, 1.0, 1, 1, 0)),),
        search_path="shop",
    )  # fmt: skip


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute(f"CREATE DATABASE {DATABASE}")
    for statement in _MADE:
        running.execute(statement, DATABASE)
    yield running
    running.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    write_workload_file(path, workload())
    return path


def dsn_of(server: RealServer) -> str:
    """A DSN without a database: the workload knows its own."""
    return server.dsn_for("postgres").replace("dbname=postgres", "").strip()


def explained(server: RealServer, file: Path, *arguments: str) -> Any:
    done = pgdyno("explain-degree", "--dsn", dsn_of(server), "--workload", str(file), *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def planned_workers(server: RealServer, sql: str, *values: str) -> int:
    """Return the workers by a plain EXPLAIN."""
    with psycopg.connect(
        server.dsn_for("postgres", DATABASE), cursor_factory=psycopg.ClientCursor
    ) as connection:
        connection.execute("SET search_path = shop")
        rows = connection.execute(f"EXPLAIN {sql}".encode(), values).fetchall()
    return max((int(text.split(":")[1]) for (text,) in rows if "Workers Planned:" in text), default=0)


def middle_of(server: RealServer, column: str) -> str:
    """Return the 51st of a histogram's 101 bounds."""
    bounds = dict(server.execute("SELECT attname, histogram_bounds::text::text[] FROM pg_stats", DATABASE))
    return str(bounds[column][50])


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
    assert "the server shows no statistics of shop.unknown.id: ANALYZE makes them" in why["unknown"]
    assert why["uncalled"] == 'no transaction calls "uncalled", which would tell its parameters'
    assert why.keys() == {"gone", "unknown", "uncalled"} | never


def test_the_table_says_the_limits_and_where_it_holds(server: RealServer, file: Path) -> None:
    done = pgdyno("explain-degree", "--dsn", dsn_of(server), "--workload", str(file))
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: " ".join(line.split()) for line in done.stdout.splitlines() if line.strip()}
    assert rows["sum"] == "sum 50.0 % 2 max_parallel_workers_per_gather = 2"
    assert rows["number"].startswith("number 1.0 % 0 the parallel-unsafe function nextval(regclass)")
    assert "never with workers: 3 statements more, 2.0\N{NO-BREAK SPACE}%" in done.stdout
    assert "not looked at: 1 statement that cannot be replayed" in done.stdout
    assert "typical ones of the planner's statistics" in done.stdout
    assert "UPDATE" not in done.stdout


def test_one_statement_is_explained_with_its_values(server: RealServer, file: Path) -> None:
    degree = explained(server, file, "--workers", "3", "sum")["degree"]
    assert degree["planned"] == 2
    first = degree["advice"]["steps"][0]
    assert first["statement"] == "SET max_parallel_workers_per_gather = 3"
    note = degree["notes"][-1]
    assert note.startswith(f"planned with $1 = '{middle_of(server, 'amount')}': typical values")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("in-state", "$1 = E'o''r\\\\{}'"),
        ("range", "$1 = '{}', $2 = '{}'"),
        ("by-day", "$1 = '2026-02-10'"),
        ("first", "$1 = '15'"),
    ],
)
def test_values_come_from_statistics_and_from_each_other(
    server: RealServer, file: Path, name: str, shown: str
) -> None:
    degree = explained(server, file, name)["degree"]
    key = int(middle_of(server, "id"))
    ((state,),) = server.execute(
        "SELECT (most_common_vals::text::text[])[1] FROM pg_stats WHERE attname = 'state'", DATABASE
    )
    values = {"in-state": (state[-1],), "range": (key, key + 59000)}
    assert f"planned with {shown.format(*values.get(name, ()))}: " in degree["notes"][-1]
    assert degree["planned"] > 0


def test_an_array_has_values_from_all_over_the_histogram(server: RealServer, file: Path) -> None:
    ((bounds,),) = server.execute(
        "SELECT ARRAY(SELECT (histogram_bounds::text::text[])[n] FROM unnest(ARRAY[26, 51, 76]) n)"
        " FROM pg_stats WHERE attname = 'amount'",
        DATABASE,
    )
    written = "{" + ",".join(f'"{one}"' for one in bounds) + "}"
    assert f"planned with $1 = '{written}': " in explained(server, file, "some")["degree"]["notes"][-1]


def test_the_server_is_only_asked(server: RealServer, file: Path) -> None:
    scanned = "SELECT sum(seq_scan) FROM pg_stat_user_tables"  # the planner itself looks into indexes
    before = server.execute(scanned, DATABASE)
    explained(server, file)
    server.execute("SELECT pg_sleep(1.2)")  # counts come a second later
    assert server.execute(scanned, DATABASE) == before
    assert server.execute("SELECT is_called FROM shop.numbers", DATABASE) == [(False,)]


def test_a_named_database_stands_before_the_workload_s(server: RealServer, file: Path) -> None:
    for given in (("--dsn", server.dsn), ("--dsn", dsn_of(server), "--dbname", "postgres")):
        done = pgdyno("explain-degree", *given, "--workload", str(file), "--json")
        assert done.returncode == 1
        assert 'no statement of "shop" can be planned in database "postgres"' in done.stderr
        why = 'is known: the database "postgres" has no column shop.orders.amount'
        assert f'DETAIL:  sum: no typical value of $1 of "sum" {why}' in done.stderr
        assert "HINT:  --dbname names another database" in done.stderr


def test_a_data_directory_leads_to_the_workload_s_database(server: RealServer, file: Path) -> None:
    where = ("--pgdata", str(server.data_directory))
    done = pgdyno("explain-degree", *where, "--workload", str(file), "--json", "sum")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["degree"]["planned"] == 2


def test_mistakes_are_said(server: RealServer, file: Path, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = pgdyno("explain-degree", "--dsn", dsn_of(server), *arguments)
        assert done.returncode == 2, done.stdout
        return done.stderr

    taken = ("--workload", str(file))
    assert "--workers is about one statement" in refused(*taken, "--workers", "3")
    misspelt = refused(*taken, "in-stat")
    assert 'the workload "shop" has no statement "in-stat"' in misspelt
    assert 'HINT:  did you mean "in-state"? without a name, all are listed' in misspelt
    assert "UPDATE is never planned with workers" in refused(*taken, "write")
    assert "BEGIN is never planned with workers" in refused(*taken, "begin")
    assert 'names are looked up in database "explained" by search_path = shop' in refused(*taken, "gone")
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
    assert "the server shows no statistics of shop.orders.amount" in found["sum"]["why_none"]
    assert found["read"]["why_none"] == (
        "the role may not explain this statement: permission denied for table orders"
    )


@pytest.mark.parametrize(
    "text",
    ["it's", "a\\'b", "\\", "", 'say "x"', "{a,b}", "NULL", " -- $1", "/* */", "$$", "line\nbreak", "ß€𝄞"],
)
def test_constants_are_written_as_the_server_reads_them(server: RealServer, text: str) -> None:
    for conforming in ("on", "off"):
        with psycopg.connect(server.dsn) as connection:
            connection.execute(f"SET standard_conforming_strings = {conforming}".encode())
            asked = f"SELECT {quoted_text(text)}, {quoted_text(array_text([text, 'b']))}::text[]"
            row = connection.execute(asked.encode()).fetchone()
        assert row == (text, [text, "b"])
