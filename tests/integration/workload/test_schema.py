"""Types of statements' parameters, from a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.connection.connection import connect
from pgdyno.workload.schema import types_of

pytestmark = pytest.mark.server
_PATIENCE_MS, _OF_ONE_MS = 2000, 500
_LIMIT = re.compile(r"set_config\('lock_timeout', '(\d+)ms'")
_LOCKED = "a table in it was locked"


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server with two tables."""
    with running_server(pg18_bin, "log_statement = 'all'") as started:
        started.execute("CREATE TABLE open (id bigint, name text)")
        started.execute("CREATE TABLE closed (id bigint)")
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data")
        yield started


def test_statements_on_locked_tables_wait_for_a_short_time_together(
    server: RealServer,
) -> None:
    texts = dict.fromkeys(range(40), "SELECT 1 FROM closed WHERE id = $1")
    texts[40] = "SELECT id FROM open WHERE name = $1 AND id = $2"
    texts[41] = "SELECT id FROM missing"
    with (
        psycopg.connect(server.dsn_for("postgres")) as other,
        closing(connect(server.dsn_for("app"))) as connection,
    ):
        other.execute("LOCK TABLE closed")
        found = types_of(connection, texts)
    assert found == {
        **dict.fromkeys(range(40), _LOCKED),
        40: ("text", "bigint"),
        41: 'relation "missing" does not exist',
    }
    limits_ms = [int(one) for one in _LIMIT.findall(server.log_file.read_text())][-len(texts) :]
    assert limits_ms[0] == _OF_ONE_MS
    # Each statement waited at least for its limit, and 1 ms is the shortest one.
    assert sum(one for one in limits_ms[:40] if one > 1) <= _PATIENCE_MS
    assert limits_ms[10:] == [1] * (len(texts) - 10)


def test_after_the_lock_all_types_are_known(server: RealServer) -> None:
    with closing(connect(server.dsn_for("app"))) as connection:
        assert types_of(connection, {1: "SELECT 1 FROM closed WHERE id = $1"}) == {1: ("bigint",)}
