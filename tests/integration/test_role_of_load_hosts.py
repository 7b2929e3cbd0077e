"""A load host logs in to scratch servers as a role that can do what load does, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from pgdyno.postgres.connection.network_access import LOAD_ROLE, NetworkAccess, entrance
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]

LOADED = """
CREATE TABLE own(id bigserial PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY);
CREATE SCHEMA client_2;
CREATE TABLE client_2.parted(id int) PARTITION BY RANGE (id);
CREATE TABLE client_2.part PARTITION OF client_2.parted DEFAULT;
CREATE VIEW seen AS SELECT id FROM own;
CREATE SEQUENCE counted;
"""
USED = """
INSERT INTO own DEFAULT VALUES; INSERT INTO client_2.parted VALUES (1); SELECT nextval('counted');
TRUNCATE client_2.parted; CREATE INDEX ON client_2.part(id); ALTER SEQUENCE own_id_seq CACHE 1000;
CREATE TABLE made(id int); CREATE SCHEMA client_3; CREATE TABLE client_3.made(id int); SELECT * FROM seen;
"""


@dataclass(frozen=True)
class Opened:
    """A scratch server with loaded data, and the way in for load."""

    server: Instance
    by: NetworkAccess

    def as_load(
        self, database: str = "bench", user: str = LOAD_ROLE
    ) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as a load host does."""
        way = f"host={self.by.address} port={self.server.port} user={user} dbname={database}"
        return psycopg.connect(way, password=self.by.password, autocommit=True)


@pytest.fixture
def opened(pg18_bin: Path, home: Path) -> Iterator[Opened]:
    account = current_account()
    installation, place = installation_at(pg18_bin, account), Workspace(home, account)
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, account, scratch / "data")
        server = Instance(installation, account, scratch / "data", sockets, 5996)
        with server.running():
            with closing(server.connect()) as connection:
                connection.execute("CREATE DATABASE bench")
            with closing(server.connect("bench")) as connection:
                connection.execute(LOADED)
        by = entrance(scratch, "127.0.0.1", ["127.0.0.1"], "bench")
        server.entrance, server.port = by, by.free_port()
        with server.running(is_immediate=True):
            yield Opened(server, by)


def test_it_works_on_the_data_as_their_owner(opened: Opened) -> None:
    with opened.as_load() as connection:
        connection.execute(USED)
        for statement in ("VACUUM (FREEZE, ANALYZE) client_2.parted", "CHECKPOINT"):
            connection.execute(statement)
        owners = connection.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname !~ '^(pg|inf)'"
        )
        assert owners.fetchall() == [(LOAD_ROLE,)]


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY own TO '/tmp/own'",
        "SELECT pg_read_file('/etc/passwd')",
        "CREATE EXTENSION file_fdw",
        "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'x', 'y'",
        "ALTER SYSTEM SET work_mem = '8MB'",
        "CREATE ROLE another",
        "CREATE DATABASE another",
        "SET ROLE pgdyno",
    ],
)
def test_it_does_nothing_with_the_servers_account_or_to_the_server(opened: Opened, statement: str) -> None:
    with opened.as_load() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement.encode())


@pytest.mark.parametrize(("database", "user"), [("postgres", LOAD_ROLE), ("bench", "pgdyno")])
def test_nobody_else_comes_in_and_nobody_goes_elsewhere(opened: Opened, database: str, user: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        opened.as_load(database, user)


def test_data_that_are_kept_are_opened_again(opened: Opened) -> None:
    """What a load host has put into the search path meanwhile is not called by a superuser."""
    planted = "CREATE FUNCTION quote_ident(name) RETURNS text LANGUAGE sql AS $$ SELECT 'x' FROM pg_authid $$"
    with opened.as_load() as connection:
        connection.execute(planted.encode())
        connection.execute("ALTER DATABASE bench SET search_path = public, pg_catalog")
        connection.execute("ALTER DATABASE bench SET default_transaction_read_only = on")
    opened.server.stop()
    opened.server.start()
    with opened.as_load() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("CREATE SCHEMA client_9")
    with closing(opened.server.connect("bench")) as connection:
        (found,) = connection.execute(
            "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'client_9'"
        )
        assert found == (LOAD_ROLE,)
