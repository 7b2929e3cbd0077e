"""Rows of a real server, read in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.fix_copies import running_originals
from tests.fix_servers import RealServer

from pgdyno.postgres.inspection.linked_tables import read_linked_tables
from pgdyno.postgres.process.row_source import RowSource

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=[pytest.param("pg15_bin", marks=pytest.mark.long), "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a market, a warehouse, and a shop."""
    with running_originals(request.getfixturevalue(request.param), "market", "warehouse", "busy") as started:
        yield started


def test_rows_are_read_in_one_snapshot_under_the_locks_of_a_query(server: RealServer) -> None:
    dsn = server.dsn_for("reader", "market")
    held = (
        "SELECT DISTINCT mode FROM pg_locks WHERE database = (SELECT oid FROM pg_database "
        "WHERE datname = 'market') AND locktype = 'relation'"
    )
    with RowSource.open(dsn, 1e9) as source:
        source.keep(read_linked_tables(source.connection).tables)
        assert server.execute(held) == [("AccessShareLock",)]
        server.execute("INSERT INTO visits VALUES ('after', 1)", "market")
        count = "SELECT count(*) FROM visits WHERE page = 'after'"
        assert source.connection.execute(count.replace("visits", "public.visits").encode()).fetchall() == [
            (0,)
        ]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            source.connection.execute("DELETE FROM public.visits")
    server.execute("DELETE FROM visits WHERE page = 'after'", "market")
