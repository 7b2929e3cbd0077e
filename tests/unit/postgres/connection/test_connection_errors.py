"""The texts were captured from libpq 18 and PostgreSQL 18.6."""

from __future__ import annotations

import psycopg
import pytest

from pgdyno.base.errors import ConnectionFailedError, ServerCrashedError, ServerError
from pgdyno.postgres.connection.connection_errors import (
    bad_connection_string,
    connection_failed,
    connection_lost,
    control_failed,
    unqualified_name,
)

REFUSED = (
    'connection failed: connection to server at "127.0.0.1", port 1 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?"
)
TWO_HOSTS = (
    'connection failed: connection to server at "127.0.0.1", port 2 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?\n"
    "Multiple connection attempts failed. All failures were:\n"
    "- host: '127.0.0.1', port: '1', hostaddr: '127.0.0.1': connection failed: connection to server at "
    '"127.0.0.1", port 1 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?\n"
    "- host: '127.0.0.1', port: '2', hostaddr: '127.0.0.1': connection failed: connection to server at "
    '"127.0.0.1", port 2 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?"
)


def fatal(reason: str) -> str:
    return f'connection failed: connection to server at "db", port 5432 failed: FATAL:  {reason}'


def test_refused_names_address_and_reason_and_asks_the_likely_question() -> None:
    error = connection_failed(REFUSED, "unused")
    assert isinstance(error, ConnectionFailedError)
    assert error.message == 'could not connect to the server at "127.0.0.1", port 1'
    assert error.detail == "Connection refused"
    assert (
        error.hint
        == "is the server running, and does it listen on that address? see listen_addresses and port"
    )


def test_of_several_hosts_each_is_named_once() -> None:
    error = connection_failed(TWO_HOSTS, "unused")
    assert error.message == (
        'could not connect to the server at "127.0.0.1", port 2 or at "127.0.0.1", port 1'
    )
    assert error.detail == "Connection refused"


def test_a_text_without_address_uses_the_target() -> None:
    error = connection_failed("connection timeout expired", '"10.0.0.1", port 5432')
    assert error.message == 'could not connect to the server at "10.0.0.1", port 5432'
    assert error.detail == "connection timeout expired"
    assert error.hint is not None
    assert "connect_timeout= waits longer" in error.hint


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ('password authentication failed for user "app"', "check user and password"),
        ('Peer authentication failed for user "postgres"', "sudo -u ROLE pgdyno"),
        ('no pg_hba.conf entry for host "10.0.0.9", user "app", database "d", no encryption', "pg_hba.conf"),
        ('database "nosuch" does not exist', "psql --list"),
        ('role "nobody" does not exist', "user= or PGUSER"),
        ("sorry, too many clients already", "wait for a connection to end"),
        (
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "wait for a connection to end",
        ),
        ("the database system is starting up", "try again in a moment"),
        ("the database system is not yet accepting connections", "try again in a moment"),
        ("the database system is shutting down", "start the server"),
        ("the database system is in recovery mode", "a server process crashed"),
        ("canceling statement due to statement timeout", "try dbname=postgres or another role"),
        ("terminating connection due to idle-session timeout", "try dbname=postgres"),
    ],
)
def test_what_the_server_says_is_the_detail_and_has_a_hint(reason: str, hint: str) -> None:
    error = connection_failed(fatal(reason), "unused")
    assert error.message == 'could not connect to the server at "db", port 5432'
    assert error.detail == reason
    assert error.hint is not None
    assert hint in error.hint


def test_another_language_is_passed_on_without_a_hint() -> None:
    error = connection_failed(fatal("Rolle »niemand« existiert nicht"), "unused")
    assert error.detail == "Rolle »niemand« existiert nicht"
    assert error.hint is None


@pytest.mark.parametrize(
    "text",
    [
        'missing "=" after "s3cret" in connection info string\n',
        'missing "=" after "a"s3cret" in connection info string\n',
        'invalid integer value "s3cret" for connection option "port"\n',
        'unexpected spaces found in "s3cret x", use percent-encoded spaces (%20) instead\n',
    ],
)
def test_a_connection_string_that_is_not_understood_is_not_repeated(text: str) -> None:
    error = bad_connection_string(text)
    assert error.message == "invalid connection string"
    assert "s3cret" not in str(error)
    assert error.exit_code == 2


def test_a_lost_connection_says_what_the_server_said_last() -> None:
    error = connection_lost("terminating connection due to administrator command\n")
    assert error.message == "lost the connection to the server"
    assert error.detail == "terminating connection due to administrator command"


LOG = "LOG:  ready"
FULL = (
    'connection failed: connection to server on socket "/tmp/s/.s.PGSQL.5433" failed: '
    "FATAL:  sorry, too many clients already"
)


def test_a_server_that_takes_no_control_connection_has_not_closed_one() -> None:
    found = control_failed(psycopg.OperationalError(FULL), "the server of a", LOG, is_running=True)
    assert type(found) is ConnectionFailedError
    assert found.message == "could not connect to the server of a"
    assert found.detail == FULL
    assert (found.hint or "").startswith("wait for a connection to end")


def test_a_control_connection_that_timed_out_was_never_made() -> None:
    late = psycopg.errors.ConnectionTimeout("connection timeout expired")
    assert type(control_failed(late, "the server of a", LOG, is_running=True)) is ConnectionFailedError


def test_a_query_without_an_answer_in_time_is_told_as_that() -> None:
    late = psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
    found = control_failed(late, "the server of a", LOG, is_running=True)
    assert type(found) is ServerError
    assert found.message == "the server of a did not respond in time"
    assert found.detail == f"canceling statement due to statement timeout\n         {LOG}"


def test_a_query_that_the_server_refuses_is_told_with_its_words() -> None:
    refused = psycopg.errors.OutOfMemory("out of memory")
    found = control_failed(refused, "the server of a", LOG, is_running=True)
    assert type(found) is ServerError
    assert found.message == "the server of a rejected one of pgdyno's queries"


@pytest.mark.parametrize(
    ("is_running", "message"),
    [
        (False, "the server of a is no longer running"),
        (True, "the server of a closed its connection"),
    ],
)
def test_a_control_connection_that_is_lost_is_told_with_the_servers_log(
    is_running: bool,  # noqa: FBT001 — a parameter of the test
    message: str,
) -> None:
    lost = psycopg.OperationalError("server closed the connection unexpectedly")
    found = control_failed(lost, "the server of a", LOG, is_running=is_running)
    assert type(found) is ServerCrashedError
    assert (found.message, found.detail) == (message, LOG)


@pytest.mark.parametrize(
    ("message", "context", "caller"),
    [
        (
            "function folded(text) does not exist",
            'PL/pgSQL function app.is_folded(text) line 1 at RETURN\nCOPY names, line 1: "1\tn1"',
            "PL/pgSQL function app.is_folded(text) line 1",
        ),
        (
            'relation "codes" does not exist',
            'SQL function "is_known" during inlining',
            'SQL function "is_known"',
        ),
        (
            "operator does not exist: app.colour = app.colour",
            'SQL function "same" statement 1',
            'SQL function "same"',
        ),
        # With a schema, it was left out of the copy, or never was there.
        ("function app.folded(text) does not exist", "PL/pgSQL function app.f() line 1", None),
        ('relation "app.codes" does not exist', 'SQL function "is_known" statement 1', None),
        ('column "code" does not exist', 'SQL function "is_known" statement 1', None),
        ('index "by_code" does not exist', "", None),
        ("division by zero", "PL/pgSQL function app.f() line 1", None),
    ],
)
def test_functions_that_depend_on_a_search_path_are_named(
    message: str, context: str, caller: str | None
) -> None:
    found = unqualified_name(message, context)
    assert found == (
        caller and f"{message}: {caller} finds it by the search path, and copies are made with an empty one"
    )


@pytest.mark.parametrize(
    ("message", "lacking"),
    [
        ("function xml_valid(text) does not exist", "extension postgres_fdw, extension xml2"),
        (
            'relation "codes" does not exist',
            "FOREIGN TABLE public codes me, extension postgres_fdw, extension xml2",
        ),
    ],
)
def test_what_a_copy_lacks_may_be_the_reason(message: str, lacking: str) -> None:
    left_out = (
        "EVENT TRIGGER - audit me",
        "FOREIGN TABLE public codes me",
        "extension postgres_fdw",
        "extension xml2",
    )
    assert unqualified_name(message, 'SQL function "ok" statement 1', left_out) == (
        f'{message}: it may be of {lacking}, which the copy lacks; or SQL function "ok" finds it by the '
        "search path, and copies are made with an empty one"
    )
