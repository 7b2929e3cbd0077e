"""The statements of running servers: their time, the rows that their plans read, and what is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.fix_bank import SETTINGS
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.planner.rows_read import reading_of
from pgdyno.postgres.sampling.prepared_plans import run_prepared
from pgdyno.postgres.statements import PreparedStatement
from pgdyno.profile.reading.statement_work import Read, TrafficCounting
from pgdyno.profile.records.profile_record import StatementTime

pytestmark = pytest.mark.server

ROWS, OF_A_CUSTOMER, CALLS = 5000, 5, 40  # see _TABLES
_TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total numeric);
INSERT INTO orders SELECT i, i % 1000, i FROM generate_series(1, 5000) AS i;
ANALYZE orders;
CREATE ROLE app LOGIN;
GRANT SELECT, UPDATE ON orders TO app;
GRANT pg_read_all_stats TO app;
"""
BY_CUSTOMER = "SELECT * FROM orders WHERE customer_id = $1"


@pytest.fixture(scope="module")
def shop(each_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, whose database shop has no index on what is looked up."""
    with running_server(each_bin, SETTINGS) as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE EXTENSION pg_stat_statements", "shop")
        server.execute(_TABLES, "shop")
        yield server


def traffic(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("app", "shop"), autocommit=True) as session:
        for customer in range(CALLS):
            session.execute("SELECT * FROM orders WHERE customer_id = %s", (customer,)).fetchall()
            session.execute("UPDATE orders SET total = total + 1 WHERE id = %s", (customer + 1,))


def read_as(server: RealServer, role: str) -> Read:
    with closing(connect(server.dsn_for(role, "shop"))) as connection:
        counting = TrafficCounting.begin(connection)
        traffic(server)
        return counting.end(2 * CALLS, {})


def by_sql(read: Read) -> dict[str, StatementTime]:
    return {one.sql.partition(" ")[0]: one for one in read.statements}


def test_statements_have_rows_read_by_plans_that_were_not_run(shop: RealServer) -> None:
    [[before]] = shop.execute("SELECT sum(total) FROM orders", "shop")
    read = read_as(shop, "app")
    found = by_sql(read)
    assert found.keys() == {"SELECT", "UPDATE"}
    assert found["SELECT"].sql == BY_CUSTOMER
    assert found["SELECT"].calls == 0.5
    assert found["SELECT"].rows == OF_A_CUSTOMER / 2
    assert found["SELECT"].rows_read == pytest.approx(ROWS, rel=0.1)  # reltuples, after updates
    assert found["SELECT"].is_estimated
    assert found["SELECT"].node == "Seq Scan on orders (filter (orders.customer_id = ?))"
    assert found["UPDATE"].rows_read == 1
    assert found["UPDATE"].node.startswith("Index Scan on orders (by orders_pkey; index cond ")
    assert read.remarks == ("statements are those of the database shop, without their planning",)
    [[after]] = shop.execute("SELECT sum(total) FROM orders", "shop")
    assert after - before == CALLS  # the application's updates alone


def test_a_plan_that_was_run_has_the_rows_that_it_read(shop: RealServer) -> None:
    text = BY_CUSTOMER.replace("orders", "public.orders")
    statement = PreparedStatement("orders", text, (23,), (("7",), ("8",)), 1.0)
    with closing(connect(shop.dsn_for("app", "shop"))) as connection:
        plans = run_prepared(connection, statement, 2, is_generic=False)
    assert [plan["Plan"]["Actual Rows"] for plan in plans] == [OF_A_CUSTOMER] * 2
    reading = reading_of([plan["Plan"] for plan in plans], {})
    assert reading.rows == ROWS
    assert not reading.is_estimated


def test_statements_counted_before_are_read_as_well(shop: RealServer) -> None:
    traffic(shop)
    with closing(connect(shop.dsn_for("app", "shop"))) as connection:
        read = TrafficCounting.begin(connection).so_far()
    [found] = [one for one in read.statements if one.sql == BY_CUSTOMER]
    assert found.calls >= CALLS
    assert found.node.startswith("Seq Scan on orders")


def test_a_superuser_plans_none_of_them(shop: RealServer) -> None:
    read = read_as(shop, "postgres")
    assert by_sql(read)["SELECT"].node == ""
    [remark] = read.remarks[1:]
    assert remark == (
        "plans of statements are not read, because the role is a superuser: connect as the application's "
        "role, with pg_read_all_stats"
    )


def test_a_table_that_the_role_may_not_read_has_no_plan(shop: RealServer) -> None:
    shop.execute("CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats", "shop")
    read = read_as(shop, "watcher")
    assert {one.node for one in read.statements} == {""}
    assert read.remarks[1:] == ("plans of 2 statements are unknown: permission denied for table orders",)


def test_no_prepared_statement_is_left_in_the_session(shop: RealServer) -> None:
    with closing(connect(shop.dsn_for("app", "shop"))) as connection:
        counting = TrafficCounting.begin(connection)
        traffic(shop)
        counting.end(2 * CALLS, {})
        left = connection.execute("SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements")
        assert left.fetchall() == [(0,)]


def test_a_database_without_the_extension_has_no_statements(shop: RealServer) -> None:
    with closing(connect(shop.dsn)) as connection:
        read = TrafficCounting.begin(connection).end(1, {})
    assert read == Read(
        (), ("statements are not distinguished: this database has no extension pg_stat_statements",)
    )


def test_counters_that_were_reset_in_between_are_not_used(shop: RealServer) -> None:
    with closing(connect(shop.dsn_for("app", "shop"))) as connection:
        counting = TrafficCounting.begin(connection)
        shop.execute("SELECT pg_stat_statements_reset()", "shop")
        read = counting.end(1, {})
    assert read == Read((), ("statements are not distinguished: pg_stat_statements was reset",))
