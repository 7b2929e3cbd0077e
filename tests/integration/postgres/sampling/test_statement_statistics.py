"""What pg_stat_statements counted: whole texts, and evictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.fix_bank import SETTINGS
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.sampling.statement_statistics import (
    MOST_CHARACTERS,
    WHOLE_TEXT,
    read_evictions,
    read_statement_times,
)

pytestmark = pytest.mark.server


@pytest.fixture
def counting(pg18_bin: Path) -> Iterator[RealServer]:
    few = f"{SETTINGS}pg_stat_statements.max = 100\n"  # the fewest allowed
    with running_server(pg18_bin, few) as server:
        yield server


def test_whole_texts_and_evictions_are_read(counting: RealServer) -> None:
    columns = ", ".join(f"n AS column_number_{number}" for number in range(150))
    text = f"SELECT {columns} FROM generate_series($1::int, $2) AS n"  # noqa: S608 — constants
    assert len(text) > 3000
    with psycopg.connect(counting.dsn, autocommit=True) as session:
        session.execute("CREATE EXTENSION pg_stat_statements")
        session.execute("SELECT pg_stat_statements_reset()")
        for _ in range(3):
            session.execute(text.replace("$1", "1").replace("$2", "4").encode())
        with closing(connect(counting.dsn)) as connection:
            assert read_evictions(connection) == 0
            whole, usual, none = (
                (one.sql, one.calls)
                for most in (WHOLE_TEXT, MOST_CHARACTERS, 0)
                for one in read_statement_times(connection, "postgres", most)
                if one.rows == 12
            )
        assert (whole, usual, none) == ((text, 3), (text[:2000], 3), ("", 3))
        for number in range(200):
            session.execute(f"SELECT 1 AS column_{number}".encode())
            session.execute(f"SELECT {', '.join(['1'] * (number + 1))}".encode())
    with closing(connect(counting.dsn)) as connection:
        assert read_evictions(connection) > 0
