"""Statements that pg_stat_statements does not show as SQL, captured from real servers and replayed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_bank import SETTINGS as COUNTING
from tests.fix_bank import capture as capture_statistics
from tests.fix_captured import replay_on_a_copy
from tests.fix_logging import SETTINGS as LOGGING
from tests.fix_logging import capture as capture_log
from tests.fix_logging import log_files, set_logging
from tests.fix_servers import RealServer, running_server, wait_until

pytestmark = pytest.mark.server
_SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE orders (
    id bigserial PRIMARY KEY, customer int NOT NULL, state text NOT NULL, placed date NOT NULL,
    at timestamptz NOT NULL, worth numeric, m mood DEFAULT 'ok', opens time DEFAULT '10:00');
INSERT INTO orders (customer, state, placed, at, worth)
    SELECT n % 500, (ARRAY['new', 'paid', 'sent'])[1 + n % 3], date '2024-01-01' + n % 700,
           timestamptz '2024-01-01' + n * interval '1 hour', n / 7.0
    FROM generate_series(1, 5000) n;
CREATE INDEX ON orders (placed);
CREATE TABLE stage (t text);
CREATE FUNCTION log(t text) RETURNS void LANGUAGE sql AS 'INSERT INTO stage VALUES (t)';
CREATE FUNCTION pure(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT upper(t)';
CREATE TABLE docs (id serial PRIMARY KEY, tenant int NOT NULL, body text);
INSERT INTO docs (tenant, body) SELECT n % 50, 'body ' || n FROM generate_series(1, 1000) n;
CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data;
ALTER TABLE docs OWNER TO app;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON docs USING (tenant = current_setting('app.tenant')::int);
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app;
ANALYZE;
"""
_READING = (
    "SELECT count(*) FROM orders WHERE placed = date '{day}'",
    "SELECT id FROM orders WHERE placed >= date'{day}' AND placed < date '{day}' + interval '3 days'",
    "SELECT count(*) FROM orders WHERE at > timestamptz '{day}' - interval '1' day",
    """SELECT extract(month from placed), count(*) FROM orders WHERE placed > date '{day}'
    GROUP BY extract(month from placed)""",
    """SELECT date_trunc('day', at), sum(worth) FROM orders WHERE customer = {id} % 500
    GROUP BY date_trunc('day', at) ORDER BY date_trunc('day', at)""",
    """SELECT count(*) FROM orders WHERE customer = {id} % 500
    GROUP BY date_trunc('day', at), customer % 7 ORDER BY date_trunc('day', at)""",
    """SELECT DISTINCT ON (date_trunc('day', at)) date_trunc('day', at), worth * 1.5 FROM orders
    WHERE customer = {id} % 500 ORDER BY date_trunc('day', at), worth * 1.5""",
    """SELECT date_trunc('day', at), date_trunc('month', at),
        sum(count(*)) OVER (ORDER BY date_trunc('day', at))
    FROM orders WHERE customer = {id} % 500
    GROUP BY ROLLUP (date_trunc('month', at), (date_trunc('day', at))) ORDER BY date_trunc('month', at)""",
    """SELECT CASE WHEN worth > 9 THEN 'much' ELSE 'little' END AS kind, count(*) FROM orders
    WHERE customer = {id} % 500 GROUP BY CASE WHEN worth > 9 THEN 'much' ELSE 'little' END""",
    "SELECT sum(CASE WHEN state = 'paid' THEN 1 ELSE 0 END) FROM orders WHERE customer = {id}",
    "SELECT placed + 7, 2 + 21, at AT TIME ZONE 'UTC', substring(state from 1 for 2) FROM orders LIMIT 1",
    "SELECT position('a' in state), overlay(state placing 'zz' from 1 for 2) FROM orders WHERE id = {id}",
    "SELECT count(*) FROM orders WHERE id = ANY (ARRAY[{id}, 2]) AND m = mood 'ok' AND opens > time '09:00'",
    "SELECT jsonb_build_object('id', id) FROM orders WHERE id = {id}",
    "SELECT pure(state) FROM orders WHERE id = {id}",
    "EXECUTE one({id})",
    "EXECUTE two({id})",
)
_WRITING = (
    """INSERT INTO orders (id, customer, state, placed, at)
    VALUES (nextval('orders_id_seq'), {id}, 'new', date '{day}', now() + interval '1 hour')""",
    "UPDATE orders SET at = at + interval '1 minute', placed = date '{day}' WHERE id = {id}",
    "SELECT log('x')",
)
_PREPARED = (
    "PREPARE one AS SELECT state FROM orders WHERE id = $1 AND state <> 'lost'",
    "PREPARE two (int) AS SELECT count(*) FROM orders WHERE customer = $1",
)
_OF_TENANT = (
    "BEGIN",
    "SELECT set_config('app.tenant', '{tenant}', true)",
    "SELECT count(*) FROM docs WHERE id > {id}",
    "SELECT pg_sleep(0.002)",
    "COMMIT",
)


@pytest.fixture(scope="module", params=["pg15_bin", "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server that counts and logs statements, with a database of orders and documents."""
    with running_server(request.getfixturevalue(request.param), COUNTING + LOGGING) as started:
        started.execute("CREATE DATABASE shop")
        started.execute("CREATE EXTENSION pg_stat_statements", "shop")
        for statement in _SCHEMA.strip().split(";\n"):
            started.execute(statement, "shop")
        yield started


def statement(text: str, chance: random.Random) -> bytes:
    day = f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    return text.format(id=chance.randint(1, 1000), day=day, tenant=chance.randint(0, 49)).encode()


@contextmanager
def at_work(server: RealServer, each: Sequence[str], *, is_in_order: bool = False) -> Iterator[None]:
    """Two sessions that send these statements for as long as the block lasts, as simple queries."""
    is_over, calls, errors = threading.Event(), list[int](), list[psycopg.Error]()

    def work(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 — no secret
        try:
            with psycopg.connect(server.dsn_for("app", "shop"), autocommit=True) as connection:
                for text in _PREPARED:
                    connection.execute(text.encode())
                while not is_over.is_set():
                    for text in each if is_in_order else [chance.choice(each)]:
                        connection.execute(statement(text, chance))
                    calls.append(seed)
        except psycopg.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(calls) > 100 or bool(errors))
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert errors == []


def calls_of(found: Mapping[str, Any]) -> float:
    """The likeness of calls."""
    return float(found["replay"]["likeness"]["by_quantity"]["calls"])


def test_typed_literals_functions_and_prepared_statements_are_replayed(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "shop.toml"
    with at_work(server, (*_READING, *_WRITING)):
        workload = capture_statistics(server, "shop", file, seconds=8)
    assert [(one.sql, one.why) for one in workload.omitted] == []
    assert not workload.is_read_only
    texts = {" ".join(one.sql.split()) for one in workload.statements}
    assert {
        "SELECT count(*) FROM orders WHERE placed = $1::date",
        (
            "SELECT pg_catalog.extract($1 , placed), count(*) FROM orders WHERE placed > $2::date "
            "GROUP BY pg_catalog.extract($1 , placed)"
        ),
        "SELECT state FROM orders WHERE id = $1 AND state <> $2",
        "SELECT count(*) FROM orders WHERE customer = $1::int",
        (
            "SELECT placed + $1::integer, $2::integer + $3::integer, at AT TIME ZONE $4, "
            "substring(state from $5::integer for $6::integer) FROM orders LIMIT $7"
        ),
    } <= texts
    found = replay_on_a_copy(server, "shop", file, home)
    assert found["replay"]["run"]["failures"] == []
    assert calls_of(found) >= 0.9, found


@pytest.mark.parametrize(
    ("more", "is_read_only"), [((), True), (("SELECT log('x')",), False)], ids=["immutable", "log"]
)
def test_a_function_with_a_name_of_postgresql_may_write(
    server: RealServer,
    tmp_path: Path,
    more: tuple[str, ...],
    is_read_only: bool,  # noqa: FBT001
) -> None:
    with at_work(server, (*_READING, *more)):
        workload = capture_statistics(server, "shop", tmp_path / "shop.toml", seconds=3)
    assert workload.is_read_only is is_read_only


def test_a_setting_that_policies_read_is_set_in_the_replay(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "docs.toml"
    with at_work(server, _OF_TENANT, is_in_order=True):
        workload = capture_statistics(server, "shop", file, seconds=6)
    assumed = "setting $1 is assumed to be app.tenant, the only one that policies read"
    assert any(note.endswith(assumed) for note in workload.notes), workload.notes
    found = replay_on_a_copy(server, "shop", file, home)
    assert found["replay"]["run"]["failures"] == []
    assert calls_of(found) >= 0.9, found


def test_logs_show_prepared_statements_and_names_of_settings_and_sequences(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    each = (
        *_OF_TENANT[:3],
        "EXECUTE two({id})",
        "SELECT extract(epoch from at) FROM orders WHERE id = {id}",
        _WRITING[0],
        "SELECT date_trunc('day', at) FROM orders WHERE customer = {id} GROUP BY date_trunc('day', at)",
        "COMMIT",
    )
    before = set_logging(server, "csvlog", log_statement="all", log_min_duration_statement="0")
    chance = random.Random(1)  # noqa: S311 — no secret
    with psycopg.connect(server.dsn_for("app", "shop"), autocommit=True) as connection:
        for text in (*_PREPARED, *each * 20, "DEALLOCATE ALL"):
            connection.execute(statement(text, chance) if text in each else text.encode())
    set_logging(server, "csvlog", log_statement="none", log_min_duration_statement="-1")
    logs = [one for one in log_files(server, "csvlog") if one not in before]
    file = tmp_path / "log.toml"
    workload = capture_log(server, "shop", file, logs)
    assert [(one.sql, one.why) for one in workload.omitted] == [
        ("DEALLOCATE ALL …", "a replay prepares statements itself")
    ]
    [block] = workload.transactions
    assert (block.weight, len(block.calls)) == (20, 8)
    assert {" ".join(one.sql.split()) for one in workload.statements} == {
        "BEGIN",
        "SELECT set_config('app.tenant', $1, $2)",
        "SELECT count(*) FROM docs WHERE id > $1",
        "SELECT count(*) FROM orders WHERE customer = $1::int",
        "SELECT extract(epoch from at) FROM orders WHERE id = $1",
        (
            "INSERT INTO orders (id, customer, state, placed, at) "
            "VALUES (nextval('orders_id_seq'), $1, $2, $3::date, now() + $4::interval)"
        ),
        "SELECT date_trunc($1, at) FROM orders WHERE customer = $2 GROUP BY date_trunc($1, at)",
        "COMMIT",
    }
    found = replay_on_a_copy(server, "shop", file, home)
    assert found["replay"]["run"]["failures"] == []
    assert calls_of(found) >= 0.9, found
