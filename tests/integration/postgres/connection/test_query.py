"""Questions to a real server that it does not answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.fix_servers import RealServer

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.connection.control_connection import READING
from pgdyno.postgres.connection.query import ask, ask_rows, require

pytestmark = pytest.mark.server


@pytest.fixture
def connection(pg18: RealServer) -> Iterator[Connection]:
    with contextlib.closing(connect(pg18.dsn)) as opened:
        yield opened


def test_a_question_that_takes_too_long_is_unknown(pg18: RealServer) -> None:
    limited = {**READING, "statement_timeout": "20ms"}
    with contextlib.closing(connect(pg18.dsn, settings=limited)) as connection:
        answer = ask_rows(connection, "SELECT pg_sleep(5)", "pg_sleep()").value
    assert answer == Unknown("canceling statement due to statement timeout")


def test_a_function_that_the_server_does_not_have_is_unknown(connection: Connection) -> None:
    assert ask(connection, "SELECT pg_catalog.no_such_thing()", int, "no_such_thing()").value == Unknown(
        "not available on this server: function pg_catalog.no_such_thing() does not exist"
    )


def test_null_and_no_row_are_unknown(connection: Connection) -> None:
    nothing = Fact[int](Unknown("the server returned no value"), "x")
    assert ask(connection, "SELECT NULL::int", int, "x") == nothing
    assert ask(connection, "SELECT 1 WHERE false", int, "x") == nothing


def test_a_value_of_another_type_is_an_error(connection: Connection) -> None:
    with pytest.raises(ServerError, match="x returned str, expected int"):
        ask(connection, "SELECT 'one'", int, "x")


def test_what_is_required_and_not_answered_is_an_error(connection: Connection) -> None:
    with pytest.raises(ServerError) as caught:
        require(connection, "SELECT NULL::int", int, "pg_backend_pid()")
    assert caught.value.message == "the server does not report pg_backend_pid()"
    assert caught.value.detail == "the server returned no value"


def test_any_other_failure_is_an_error_with_its_sqlstate(connection: Connection) -> None:
    with pytest.raises(ServerError) as caught:
        ask_rows(connection, "SELECT 1/0", "x")
    assert str(caught.value) == "a query failed: division by zero\nDETAIL:  SQLSTATE 22012"
