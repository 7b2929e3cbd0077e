"""Connections that succeed and fail against real servers; what people read when they fail."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, free_port, wait_until

from pgdyno.base.errors import ConnectionFailedError, UsageError
from pgdyno.postgres.connection.connection import connect, describe, has_password

pytestmark = pytest.mark.server

PASSWORD = "r1ght-Pa55"  # noqa: S105 — of a role that lives as long as these tests


@pytest.fixture(scope="module")
def guarded(pg18: RealServer) -> Iterator[RealServer]:
    """Return the server with a role that needs a password over TCP."""
    pg18.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
    yield pg18
    pg18.execute("DROP ROLE guarded")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's own libpq settings out."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "no-such-file"))


def failure(dsn: str) -> ConnectionFailedError:
    with pytest.raises(ConnectionFailedError) as caught:
        connect(dsn)
    assert caught.value.exit_code == 1
    return caught.value


def test_a_connection_is_limited_read_only_and_named(pg18: RealServer) -> None:
    with contextlib.closing(connect(pg18.dsn)) as connection:
        shown = connection.execute(
            "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),"
            " current_setting('transaction_read_only'), current_setting('application_name')"
        ).fetchone()
        assert shown == ("10s", "10s", "on", "pgdyno")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TABLE never ()")
        assert describe(connection) == (
            f"host={pg18.socket_directory} port={pg18.port} dbname=postgres user=postgres"
        )


def test_libpqs_environment_is_honoured(pg18: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", str(pg18.socket_directory))
    monkeypatch.setenv("PGPORT", str(pg18.port))
    monkeypatch.setenv("PGUSER", "postgres")
    monkeypatch.setenv("PGDATABASE", "template1")
    monkeypatch.setenv("PGAPPNAME", "nightly")
    with contextlib.closing(connect()) as connection:
        shown = connection.execute(
            "SELECT current_database(), current_setting('application_name')"
        ).fetchone()
    assert shown == ("template1", "nightly")


def test_a_service_file_is_honoured(
    pg18: RealServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    services = tmp_path / "services.conf"
    services.write_text(
        f"[mine]\nhost={pg18.socket_directory}\nport={pg18.port}\nuser=postgres\ndbname=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with contextlib.closing(connect("service=mine")) as connection:
        assert connection.info.port == pg18.port


def test_a_uri_and_a_password_file_are_honoured(
    guarded: RealServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:guarded:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    with contextlib.closing(connect(f"postgresql://guarded@127.0.0.1:{guarded.port}/postgres")) as connection:
        assert connection.info.user == "guarded"


def test_a_wrong_password_is_said_and_not_shown(guarded: RealServer) -> None:
    error = failure(f"postgresql://guarded:wr0ng-Pa55@127.0.0.1:{guarded.port}/postgres")
    assert str(error) == (
        f'could not connect to the server at "127.0.0.1", port {guarded.port}\n'
        'DETAIL:  password authentication failed for user "guarded"\n'
        "HINT:  check user and password: set PGPASSWORD, or add a line host:port:database:user:password "
        "to ~/.pgpass (mode 0600)"
    )
    assert error.__suppress_context__  # psycopg's exception could carry the connection string


def test_a_missing_password_is_said(guarded: RealServer) -> None:
    error = failure(guarded.tcp_dsn_for("guarded"))
    assert error.detail == "fe_sendauth: no password supplied"
    assert error.hint is not None
    assert "PGPASSWORD" in error.hint


def test_a_missing_database_is_named(pg18: RealServer) -> None:
    error = failure(pg18.dsn_for("postgres", "nosuch"))
    assert error.message == (
        f'could not connect to the server on socket "{pg18.socket_directory}/.s.PGSQL.{pg18.port}"'
    )
    assert error.detail == 'database "nosuch" does not exist'
    assert error.hint == "psql --list shows the databases; name one with dbname= or PGDATABASE"


def test_a_missing_role_is_named(pg18: RealServer) -> None:
    assert failure(pg18.dsn_for("stranger")).detail == 'role "stranger" does not exist'


def test_a_missing_socket_is_named(tmp_path: Path) -> None:
    error = failure(f"host={tmp_path} port=5433")
    assert error.message == f'could not connect to the server on socket "{tmp_path}/.s.PGSQL.5433"'
    assert error.detail == "No such file or directory"
    assert error.hint is not None
    assert "pg_lsclusters" in error.hint


def test_an_unreachable_port_is_named() -> None:
    port = free_port()
    error = failure(f"host=127.0.0.1 port={port}")
    assert error.message == f'could not connect to the server at "127.0.0.1", port {port}'
    assert error.detail == "Connection refused"


def test_a_host_that_does_not_exist_is_named() -> None:
    error = failure("host=db.invalid port=5432")  # RFC 2606: never resolves
    assert error.message == 'could not connect to the server at "db.invalid", port 5432'
    assert error.hint == "check the host name, or use its address"


def test_a_server_that_never_answers_ends_within_connect_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        error = failure(f"host=127.0.0.1 port={port} connect_timeout=2")
    assert error.message == f'could not connect to the server at "127.0.0.1", port {port}'
    assert error.detail == "connection timeout expired"


def test_an_unknown_service_is_named() -> None:
    error = failure("service=nosuch")
    assert error.detail == 'definition of service "nosuch" not found'
    assert error.hint is not None
    assert "pg_service.conf" in error.hint


def test_a_server_that_does_not_speak_tls_is_said(guarded: RealServer) -> None:
    error = failure(guarded.tcp_dsn_for("guarded") + " sslmode=require")
    assert error.detail == "server does not support SSL, but SSL was required"


def test_a_full_server_is_said(scratch_pg18: RealServer) -> None:
    scratch_pg18.append_configuration(
        "max_connections = 4\nsuperuser_reserved_connections = 3\nmax_wal_senders = 0\n"
    )
    scratch_pg18.execute("CREATE ROLE app LOGIN")
    scratch_pg18.restart()
    with contextlib.ExitStack() as held:

        def takes_the_last_slot() -> bool:
            """Whoever looked whether the server is up may still be leaving."""
            try:
                held.enter_context(psycopg.connect(scratch_pg18.dsn_for("app")))
            except psycopg.OperationalError:
                return False
            return True

        wait_until(takes_the_last_slot)
        error = failure(scratch_pg18.dsn_for("app"))
    assert error.detail == "remaining connection slots are reserved for roles with the SUPERUSER attribute"
    assert error.hint == "wait for a connection to end, or connect as a role that may use the reserved ones"


def test_a_server_that_is_shutting_down_is_said(scratch_pg18: RealServer) -> None:
    with psycopg.connect(scratch_pg18.dsn, autocommit=True) as connection:
        connection.execute("SELECT 1")
        os.kill(scratch_pg18.pid, signal.SIGTERM)  # smart shutdown: waits for the connection above
        wait_until(lambda: not scratch_pg18.takes_connections())
        error = failure(scratch_pg18.dsn)
    assert error.detail == "the database system is shutting down"
    assert error.hint == "start the server, or name another one with --dsn"


@pytest.mark.parametrize(
    "dsn",
    [
        "host=db password=s3 cret",
        "postgresql://app:s3 cret@db/x",
        "postgresql://app:s3cret@[db/x",
        "bogus=s3cret",
    ],
)
def test_a_connection_string_that_cannot_be_parsed_is_a_usage_error_without_its_text(dsn: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(dsn)
    assert caught.value.message == "invalid connection string"
    assert "cret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_password_in_a_connection_string_is_noticed() -> None:
    assert has_password("postgresql://app:s3cret@db/x")
    assert has_password("host=db password=s3cret")
    assert not has_password("host=db user=app")
