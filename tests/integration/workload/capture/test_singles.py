"""Which statements ran in blocks and which outside, of a real application of an ORM's manners."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_bank import SETTINGS, capture
from tests.fix_servers import RealServer, running_server
from tests.shop.buying import sessions_at_work

from pgdyno.model.experiments.captured import CapturedWorkload

pytestmark = pytest.mark.server
_SCHEMA = """
CREATE TABLE visits (id int PRIMARY KEY, data text);
CREATE TABLE users (id int PRIMARY KEY, name text);
CREATE TABLE orders (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, user_id int);
CREATE TABLE stock (id int PRIMARY KEY, left_over bigint);
CREATE TABLE carts (user_id int, product int);
CREATE TABLE offers (id int PRIMARY KEY, uses bigint);
INSERT INTO visits SELECT n, 'v' FROM generate_series(1, 1000) n;
INSERT INTO users SELECT n, 'u' || n FROM generate_series(1, 1000) n;
INSERT INTO stock SELECT n, 1000000 FROM generate_series(1, 1000) n;
INSERT INTO offers SELECT n, 0 FROM generate_series(1, 1000) n;
ANALYZE;
"""
_VISIT = "SELECT data FROM visits WHERE id = %s"
_USER = "SELECT name FROM users WHERE id = %s"
_ORDER = "INSERT INTO orders (user_id) VALUES (%s)"
_STOCK = "UPDATE stock SET left_over = left_over - 1 WHERE id = %s"
_CART = "INSERT INTO carts (user_id, product) VALUES (%s, 7)"
_OFFER = "UPDATE offers SET uses = uses + 1 WHERE id = %s"
_CLIENTS = 4


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, with a shop's database."""
    with running_server(pg18_bin, SETTINGS) as started:
        started.execute("CREATE DATABASE shop")
        started.execute("CREATE EXTENSION pg_stat_statements", "shop")
        with psycopg.connect(started.dsn_for("postgres", "shop"), autocommit=True) as connection:
            connection.execute(_SCHEMA)
        yield started


def request(connection: psycopg.Connection, chance: random.Random, number: int) -> None:
    """Serve a request, and pause.

    It looks up the visit and the user in autocommit, and then runs one block, which looks up the visit
    again: every third one makes an order, the others fill a cart.
    """
    for text in (_VISIT, _USER):
        connection.execute(text, (chance.randint(1, 1000),))
        time.sleep(0.0005)
    with connection.transaction():
        for text in (_VISIT, *((_CART, _OFFER) if number % 3 else (_ORDER, _STOCK))):
            connection.execute(text, (chance.randint(1, 1000),))
            time.sleep(0.0005)
    time.sleep(chance.expovariate(1 / 0.01))


def kinds_of(workload: CapturedWorkload) -> dict[frozenset[str], float]:
    """The statements of each kind of transaction, and its share of all transactions."""
    whole = sum(one.weight for one in workload.transactions)
    return {
        frozenset(call.statement for call in one.calls): one.weight / whole for one in workload.transactions
    }


def test_statements_of_autocommit_stay_outside_of_blocks_and_kinds_that_share_one_stay_apart(
    server: RealServer, tmp_path: Path
) -> None:
    expected = {
        frozenset({"select-visits"}): 1 / 3,
        frozenset({"select-users"}): 1 / 3,
        frozenset({"begin", "select-visits", "insert-carts", "update-offers", "commit"}): 2 / 9,
        frozenset({"begin", "select-visits", "insert-orders", "update-stock", "commit"}): 1 / 9,
    }
    with sessions_at_work(server.dsn_for("postgres", "shop"), _CLIENTS, request):
        for seconds in (8, 16, 32):  # other tests run too: few blocks may be seen
            workload = capture(server, "shop", tmp_path / f"shop-{seconds}.toml", seconds=seconds)
            found = kinds_of(workload)
            if found.keys() == expected.keys():
                break
    assert found == pytest.approx(expected, abs=0.15)  # the database's count comes a second late
    for call in (call for one in workload.transactions for call in one.calls):
        assert call.times == pytest.approx(1, abs=0.45 if call.statement == "select-visits" else 0.1)
    assert workload.assumed_share < 0.01  # blocks that the capture cut
    both = "select-visits: ran in blocks (BEGIN …) and outside of them"
    assert both in [note.split(";")[0] for note in workload.notes]
