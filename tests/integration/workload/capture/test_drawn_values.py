"""Values that replays draw: captured from a server's statistics or log, replayed, and counted in the copy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests import fix_bank, fix_logging
from tests.fix_captured import replay_on_a_copy
from tests.fix_copies import bench_briefly
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.model.experiments.captured import (
    CapturedWorkload,
    ColumnValue,
    Constant,
    Letters,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)

pytestmark = pytest.mark.server
_MADE = (
    "CREATE EXTENSION pg_stat_statements",
    "CREATE TABLE orders (id int PRIMARY KEY, placed date NOT NULL, at timestamptz, price numeric(10, 2))",
    "INSERT INTO orders SELECT n, date '2020-01-01' + n / 100 FROM generate_series(1, 40000) n",
    "UPDATE orders SET at = timestamptz '2020-01-01' + id * interval '10 min', price = id * 0.25",
    "CREATE INDEX ON orders (placed)",
    "CREATE TABLE vouchers (code varchar(16) PRIMARY KEY, made timestamptz, valid date, uses int)",
    "ALTER TABLE vouchers ADD CHECK (uses >= 0)",
    "INSERT INTO vouchers SELECT 'old ' || n, '2020-01-01', '2020-01-01', 0 FROM generate_series(1, 500) n",
    "CREATE TABLE lines (xid bigint DEFAULT txid_current(), owner int REFERENCES orders, product int)",
    "CREATE TABLE owners (id int PRIMARY KEY)",
    "CREATE TABLE cars (owner int NOT NULL REFERENCES owners, name text)",
    "VACUUM (ANALYZE)",
)
_ROWS = """
SELECT s.query, s.rows / s.calls::float FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = 'shop_copy' AND s.query LIKE '%orders%'
"""


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server that counts and logs statements, with a database of a shop."""
    with running_server(pg18_bin, fix_logging.SETTINGS) as started:
        started.execute("CREATE DATABASE shop")
        for statement in _MADE:
            started.execute(statement, "shop")
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        yield started


def counted(server: RealServer, file: Path, *statements: str) -> CapturedWorkload:
    """Capture statements that run again and again."""
    server.execute("SELECT pg_stat_statements_reset()", "shop")
    with ExitStack() as stack:
        for one in statements:
            stack.enter_context(fix_bank.repeating(server, one, "shop"))
        return fix_bank.capture(server, "shop", file, seconds=3)


def logged(
    server: RealServer, file: Path, calls: Sequence[tuple[str, Sequence[object]]], *options: str
) -> CapturedWorkload:
    """Capture calls from the log."""
    before = fix_logging.set_logging(server, "csvlog", log_statement="all", log_min_duration_statement="0")
    with psycopg.connect(server.dsn_for("postgres", "shop"), autocommit=True) as session:
        for sql, values in calls:
            session.execute(sql.encode(), values, prepare=False)
    fix_logging.set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="-1")
    logs = [one for one in fix_logging.log_files(server, "csvlog") if one not in before]
    return fix_logging.capture(server, "shop", file, logs, *options)


def parameters_of(workload: CapturedWorkload) -> dict[str, tuple[Parameter, ...]]:
    return {call.statement: call.parameters for one in workload.transactions for call in one.calls}


def rows_by_start(server: RealServer) -> dict[str, float]:
    """Return the rows per call in the copy, by the beginning of the statement."""
    return {str(query)[:14]: float(rows) for query, rows in server.execute(_ROWS, "shop")}


def test_ranges_have_as_many_rows_as_in_the_original(server: RealServer, tmp_path: Path, home: Path) -> None:
    file = tmp_path / "counted.toml"
    workload = counted(
        server,
        file,
        "SELECT id FROM orders WHERE placed >= '2020-03-01' AND placed < '2020-03-04'",
        "SELECT at FROM orders WHERE at BETWEEN '2020-03-01' AND '2020-03-01 16:35'",
        "SELECT count(*) FROM orders WHERE price < 9000 AND price > 7500",
    )
    placed, at, price = (f"public.orders.{name}" for name in ("placed", "at", "price"))
    assert sorted(parameters_of(workload).values(), key=str) == [
        (ColumnValue(at), RangeEnd(1, at, rows=100)),
        (ColumnValue(placed), RangeEnd(1, placed, rows=300, is_open=True)),
        (ColumnValue(price), RangeEnd(1, price, is_lower=True, is_open=True)),
    ]
    [note] = [one for one in workload.notes if "any end after its beginning" in one]
    assert note.endswith("the width of its range is unknown; any end after its beginning is used")
    replayed = replay_on_a_copy(server, "shop", file, home)["replay"]
    assert replayed["run"]["failures"] == []
    rows = rows_by_start(server)
    assert rows["SELECT id FROM"] == pytest.approx(300, rel=0.1)  # three days of a hundred rows
    assert rows["SELECT at FROM"] == pytest.approx(100, rel=0.1)
    assert replayed["likeness"]["by_quantity"]["rows"] >= 0.9


def test_ranges_are_as_wide_as_in_the_log(server: RealServer, tmp_path: Path, home: Path) -> None:
    file = tmp_path / "logged.toml"
    ends = ("2020-02-27", "2020-03-04"), ("2020-05-01", "2020-05-02"), ("2020-06-01", "2020-06-02")
    workload = logged(
        server,
        file,
        [
            *(("SELECT id FROM orders WHERE placed BETWEEN %s AND %s", each) for each in ends),
            (
                "SELECT at FROM orders WHERE at >= %s AND at < %s",
                ("2020-03-01 10:00+00", "2020-03-01 12:00+00"),
            ),
            ("SELECT price FROM orders WHERE price BETWEEN %s AND %s", (100.25, 105)),
            ("SELECT count(*) FROM orders WHERE id BETWEEN %s AND %s", (11, 20)),
            (
                "SELECT placed FROM orders WHERE placed BETWEEN %s::date + %s::int AND %s::date + %s::int",
                ("2020-03-01", 1, "2020-03-01", 4),
            ),
        ],
    )
    placed, at, price = (f"public.orders.{name}" for name in ("placed", "at", "price"))
    drawn = list(parameters_of(workload).values())
    assert drawn[0] == (ColumnValue(placed), RangeEnd(1, placed, (86400, 86400, 6 * 86400)))
    assert drawn[1] == (ColumnValue(at), RangeEnd(1, at, (7200,), is_open=True))
    assert drawn[2] == (ColumnValue(price), RangeEnd(1, price, (4.75,)))
    assert drawn[3] == (ColumnValue("public.orders.id"), SameValue(1, plus=9))
    assert drawn[4][0::2] == (ColumnValue(placed), RangeEnd(1, placed, (3 * 86400,)))
    assert drawn[4][3] == SameValue(2)
    assert "2020" not in file.read_text().replace("_2020", "")
    replayed = replay_on_a_copy(server, "shop", file, home)["replay"]
    assert replayed["run"]["failures"] == []
    rows = rows_by_start(server)
    assert rows["SELECT id FROM"] == pytest.approx((200 + 200 + 700) / 3, rel=0.1)
    assert rows["SELECT at FROM"] == pytest.approx(12, rel=0.1)
    assert rows["SELECT price F"] == pytest.approx(20, rel=0.1)


def replay_again(server: RealServer, file: Path, home: Path, *options: str) -> Mapping[str, Any]:
    """Replay on the copy of an earlier replay."""
    arguments = ("--dsn", server.dsn_for("app", "shop_copy"), "--allow-load", "--for", "1s", "--json")
    done = pgdyno("workload", "replay", str(file), *arguments, *options, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    replayed: Mapping[str, Any] = json.loads(done.stdout)["replay"]
    return replayed


def test_new_rows_fit_and_are_of_now_and_every_replay_makes_others(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "new.toml"
    insert = "INSERT INTO vouchers (code, made, valid, uses) VALUES (%s, %s, %s, %s)"
    new = [(insert, (f"new {n}", datetime.now(UTC), date(2030, 1, 1), n)) for n in range(9, 29)]
    update = [("UPDATE vouchers SET uses = uses - %s WHERE code = %s", (n, f"new {n}")) for n in range(9, 29)]
    workload = logged(server, file, [*new, *update])
    drawn = parameters_of(workload)
    assert drawn["insert-vouchers"] == (
        Letters(16, 16),
        Constant("now"),
        ColumnValue("public.vouchers.valid"),
        ColumnValue("public.vouchers.uses"),
    )
    assert drawn["update-vouchers"] == (Constant("0"), ColumnValue("public.vouchers.code"))
    first = replay_on_a_copy(server, "shop", file, home)["replay"]
    second, third = (replay_again(server, file, home) for _ in range(2))
    assert [one["run"]["failures"] for one in (first, second, third)] == [[], [], []]
    assert len({one["seed"] for one in (first, second, third)}) == 3
    [[oldest, count]] = server.execute(
        "SELECT now() - min(made), count(*) FROM vouchers WHERE code ~ '^[a-z]{16}$'", "shop_copy"
    )
    assert count > 100
    assert oldest < timedelta(minutes=5)
    again = replay_again(server, file, home, "--seed", str(third["seed"]))
    assert [(one["sqlstate"], one["statement"]) for one in again["run"]["failures"]] == [
        ("23505", "insert-vouchers")
    ]

    copied = pgdyno("workload", "copy", str(file), "--dsn", server.dsn_for("postgres", "shop"))
    assert copied.returncode == 0, copied.stderr
    measured = bench_briefly(server, file, home, "--unlike")  # a warm-up and a count, on the same rows
    assert measured.returncode == 0, measured.stderr
    assert "failed on the copy" not in measured.stdout
    text = file.read_text()
    assert "{letters = [16, 16]}" in text
    file.write_text(text.replace("{letters = [16, 16]}", '{constant = "old 1"}'))
    failed = bench_briefly(server, file, home, "--unlike")
    shown = " ".join(failed.stderr.split())
    assert failed.returncode == 1
    assert "of SQLSTATE 23505 (unique_violation) in insert-vouchers; at most 5 % may fail" in shown
    assert 'may fail duplicate key value violates unique constraint "vouchers_pkey"' in shown
    assert "old 1" not in shown  # in the log: DETAIL:  Key (code)=(old 1) already exists.


def test_a_loop_adds_all_lines_to_the_order_that_was_read_before_it(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "lines.toml"
    added = [line for n in range(11, 31) for line in adding_lines(n)]
    workload = logged(server, file, [*added, *counting_pages()])
    lines = [call for one in workload.transactions for call in one.calls if "lines" in call.statement]
    returned, again = ReturnedValue(1, "select-orders"), SameValue(1, lines[0].statement)
    assert [one.parameters[0] for one in lines] == [returned, again, again]
    drawn = parameters_of(workload)
    assert drawn["select-orders-3"] == (SameValue(1, "select-orders-2"), SameValue(2, "select-orders-2"))
    assert isinstance(drawn["select-orders-2"][1], RangeEnd)
    server.execute("TRUNCATE lines", "shop")
    assert replay_on_a_copy(server, "shop", file, home)["replay"]["run"]["failures"] == []
    by_transaction = "SELECT count(*), count(DISTINCT owner) FROM lines GROUP BY xid"
    found = server.execute(by_transaction, "shop_copy")
    assert len(found) > 10
    assert set(map(tuple, found)) == {(3, 1)}


def adding_lines(n: int) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the calls of a transaction that reads an order and adds three lines, with other calls between."""
    yield "BEGIN", ()
    yield "SELECT id FROM orders WHERE price = %s", (n * 0.25,)
    for line in range(3):
        yield "INSERT INTO lines (owner, product) VALUES (%s, %s)", (n, 7 * n + line)
        yield "UPDATE vouchers SET made = now() WHERE code = %s", (f"old {n + line}",)
    yield "COMMIT", ()


def counting_pages() -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the calls of transactions that read a page and count its rows."""
    for n in range(1, 21):
        ends = f"2020-03-{n:02}", f"2020-04-{n % 7 + 1:02}"
        yield "BEGIN", ()
        yield "SELECT at FROM orders WHERE placed BETWEEN %s AND %s", ends
        yield "SELECT count(*) FROM orders WHERE placed BETWEEN %s AND %s", ends
        yield "COMMIT", ()


def test_rows_that_need_one_of_an_empty_table_are_left_out_with_the_reason(
    server: RealServer, tmp_path: Path
) -> None:
    server.execute("INSERT INTO owners VALUES (1)", "shop")
    calls = [
        ("INSERT INTO cars (owner, name) VALUES (%s, %s)", (1, "car")),
        ("TRUNCATE owners, cars", ()),
        ("SELECT id FROM orders WHERE id = %s", (1,)),
    ]
    workload = logged(server, tmp_path / "cars.toml", calls)
    [omitted] = (one for one in workload.omitted if one.sql.startswith("INSERT"))
    assert omitted.sql == "INSERT INTO cars (owner, name) VALUES ($1, $2)"
    assert omitted.why == "public.cars.owner references public.owners.id, which has no rows"
    filled = logged(server, tmp_path / "filled.toml", [("INSERT INTO owners VALUES (%s)", (1,)), *calls])
    assert [one.sql for one in filled.omitted if one.sql.startswith("INSERT")] == []
