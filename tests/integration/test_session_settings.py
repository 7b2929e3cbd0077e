"""Commands on a database whose owner has chosen settings for all sessions there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.postgres.connection.connection import Connection, connect, connect_to_change

pytestmark = pytest.mark.server
_DATABASE = "owned"
_CHOSEN = (
    ("datestyle", "German"), ("intervalstyle", "sql_standard"), ("extra_float_digits", "-15"),
    ("client_encoding", "SQL_ASCII"), ("role", "mallory"), ("default_transaction_read_only", "on"),
    ("statement_timeout", "900ms"), ("transaction_timeout", "900ms"), ("idle_session_timeout", "1min"),
    ("idle_in_transaction_session_timeout", "900ms"), ("lock_timeout", "900ms"),
    ("quote_all_identifiers", "on"), ("exit_on_error", "on"),
)  # fmt: skip
_LEFT = {"intervalstyle", "default_transaction_read_only"}  # they change nothing that is read or done


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin) as started:
        started.execute("CREATE ROLE dbo LOGIN")
        started.execute("CREATE ROLE mallory")
        started.execute(f"CREATE DATABASE {_DATABASE} OWNER dbo")
        yield started


@pytest.fixture(params=_CHOSEN, ids="=".join)
def chosen(server: RealServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A setting that the owner has chosen after an apply, and its value."""
    name, value = request.param
    yield name, value
    server.execute(f"ALTER DATABASE {_DATABASE} RESET ALL")


def choose(server: RealServer, name: str, value: str) -> None:
    with psycopg.connect(server.dsn_for("dbo", _DATABASE), autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {_DATABASE} SET {name} = '{value}'".encode())


def test_a_session_of_pgdynos_own_has_its_own_settings(server: RealServer, chosen: tuple[str, str]) -> None:
    def shown(connection: Connection) -> object:
        with contextlib.closing(connection):
            value = f"split_part(current_setting('{chosen[0]}'), ',', 1)"  # of a date style, the form alone
            return connection.execute(f"SELECT {value}".encode()).fetchone()

    kinds = (connect_to_change,) if chosen[0] == "role" else (connect, connect_to_change)
    elsewhere = [shown(kind(server.dsn)) for kind in kinds]
    choose(server, *chosen)
    there = [shown(kind(server.dsn_for("postgres", _DATABASE))) for kind in kinds]
    assert (there == elsewhere) == (chosen[0] not in _LEFT)


@pytest.mark.parametrize("kind", [connect, connect_to_change])
def test_dates_in_statements_are_read_as_the_database_has_them(
    server: RealServer, kind: Callable[[str], Connection]
) -> None:
    choose(server, "datestyle", "German")
    try:
        with contextlib.closing(kind(server.dsn_for("postgres", _DATABASE))) as connection:
            assert connection.execute("SELECT date '02.01.2026'").fetchone() == (date(2026, 1, 2),)
    finally:
        server.execute(f"ALTER DATABASE {_DATABASE} RESET ALL")


def test_a_role_that_a_login_role_has_for_itself_is_kept(server: RealServer) -> None:
    server.execute("CREATE ROLE operator LOGIN IN ROLE postgres; ALTER ROLE operator SET role = 'postgres'")
    choose(server, "role", "mallory")
    try:
        with contextlib.closing(connect_to_change(server.dsn_for("operator", _DATABASE))) as connection:
            assert connection.execute("SELECT current_user, session_user").fetchone() == (
                "postgres",
                "operator",
            )
    finally:
        server.execute(f"ALTER DATABASE {_DATABASE} RESET ALL")


def test_what_is_applied_is_reverted(server: RealServer, chosen: tuple[str, str], home: Path) -> None:
    dsn = server.dsn_for("postgres", _DATABASE)
    choose(server, *chosen)
    done = pgdyno("apply", "--lever", "checkpoint_timeout", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    changed = "SELECT count(*) FROM pg_file_settings WHERE name = 'checkpoint_timeout'"
    assert server.execute(changed) == [(1,)]
    done = pgdyno("revert", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    assert server.execute(changed) == [(0,)]


def test_a_role_that_may_not_see_all_is_not_thrown_out_for_asking(server: RealServer) -> None:
    """With exit_on_error a refusal ends the session."""
    server.execute("CREATE ROLE plain LOGIN")
    choose(server, "exit_on_error", "on")
    try:
        done = pgdyno("inspect", "--dsn", server.dsn_for("plain", _DATABASE))
        assert done.returncode == 0, done.stderr
    finally:
        server.execute(f"ALTER DATABASE {_DATABASE} RESET ALL")
