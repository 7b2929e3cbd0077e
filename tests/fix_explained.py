"""A shop whose statistics are known, and its workload, for ``pgdyno explain-degree --workload``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

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
)
from pgdyno.postgres.statement_counts import Seen

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


@contextmanager
def shop_in(running: RealServer) -> Iterator[RealServer]:
    """A server with the shop in a database of its own, for as long as the block lasts."""
    running.execute(f"CREATE DATABASE {DATABASE}")
    for statement in _MADE:
        running.execute(statement, DATABASE)
    yield running
    running.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def dsn_of(server: RealServer) -> str:
    """A DSN without a database: the workload knows its own."""
    return server.reading_dsn().replace("dbname=postgres", "").strip()


def explained(server: RealServer, file: Path, *arguments: str) -> Any:
    """Run the command; return what it prints as JSON."""
    done = pgdyno("explain-degree", "--dsn", dsn_of(server), "--workload", str(file), *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def middle_of(server: RealServer, column: str) -> str:
    """Return the 51st of a histogram's 101 bounds."""
    bounds = dict(server.execute("SELECT attname, histogram_bounds::text::text[] FROM pg_stats", DATABASE))
    return str(bounds[column][50])
