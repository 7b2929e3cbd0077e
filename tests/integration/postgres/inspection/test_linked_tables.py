"""Tables of a real server that refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_copies import running_originals, sample, sampled, workload_file
from tests.fix_servers import RealServer

from pgdyno.base.errors import ServerError
from pgdyno.postgres.inspection.linked_tables import read_linked_tables
from pgdyno.postgres.process.row_source import RowSource

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=[pytest.param("pg15_bin", marks=pytest.mark.long), "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with a market, a warehouse, and a shop."""
    with running_originals(request.getfixturevalue(request.param), "market", "warehouse", "busy") as started:
        yield started


def test_nothing_but_a_role_that_sees_all_rows_samples(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    file = workload_file(server, "warehouse", tmp_path)
    server.execute("CREATE ROLE stranger LOGIN")
    refused = sample(server, "warehouse", file, home, "--share", "0.2", role="stranger")
    assert refused.returncode == 1
    assert "the role may not read public." in refused.stderr
    policed = sample(server, "warehouse", file, home, "--share", "0.2")
    assert policed.returncode == 4
    assert "row security policies hide rows of public.policed from the role" in policed.stderr
    assert "connect as a role with BYPASSRLS (none exists yet)" in policed.stderr
    assert not file.with_suffix(".dump").exists()


def test_the_owner_of_a_table_with_forced_policies_needs_another_role(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE DATABASE kept")
    server.execute("CREATE ROLE keeper LOGIN")
    server.execute("CREATE TABLE mine AS SELECT 1 AS id; ALTER TABLE mine OWNER TO keeper", "kept")
    server.execute("ALTER TABLE mine ENABLE ROW LEVEL SECURITY", "kept")
    server.execute("ALTER TABLE mine FORCE ROW LEVEL SECURITY", "kept")
    server.execute("CREATE ROLE seeing LOGIN BYPASSRLS")
    file = workload_file(server, "kept", tmp_path)
    try:
        forced = sample(server, "kept", file, home, "--share", "0.2", role="keeper")
        assert forced.returncode == 4
        assert "policies apply to the owner of public.mine, too" in forced.stderr
        assert "connect as a role with BYPASSRLS (seeing)" in forced.stderr
        server.execute("ALTER TABLE mine NO FORCE ROW LEVEL SECURITY", "kept")
        of_others = sample(server, "kept", file, home, "--share", "0.2")
        assert of_others.returncode == 4
        assert "connect as the tables' owner, or as a role with BYPASSRLS (seeing)" in of_others.stderr
        assert sampled(sample(server, "kept", file, home, "--share", "0.2", role="keeper"))["rows"] == {
            "public.mine": 1
        }
    finally:
        server.execute("DROP ROLE seeing")


@pytest.mark.parametrize(
    "exchange",
    [
        "ALTER TABLE exchanged RENAME TO former; CREATE VIEW exchanged AS SELECT 1 AS id",
        "ALTER TABLE exchanged RENAME TO former; CREATE TABLE exchanged (id int)",
        "DROP TABLE exchanged",
    ],
)
def test_a_table_that_is_exchanged_before_it_is_locked_is_not_read(server: RealServer, exchange: str) -> None:
    server.execute("CREATE TABLE exchanged (id int)", "market")
    try:
        with RowSource.open(server.dsn_for("reader", "market"), 1e9) as source:
            tables = read_linked_tables(source.connection).tables
            with psycopg.connect(server.dsn_for("postgres", "market")) as other:
                other.execute(exchange.encode())
            with pytest.raises(ServerError) as caught:
                source.keep(tables)
    finally:
        server.execute("DROP VIEW IF EXISTS exchanged" if "VIEW" in exchange else "SELECT", "market")
        server.execute("DROP TABLE IF EXISTS former, exchanged", "market")
    assert "exchanged" in caught.value.message
