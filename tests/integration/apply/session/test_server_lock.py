"""Locks of a server are held against other pgdynos, and not by roles that may not do what they are about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.session import CHANGING, LOADING, ServerLock, take
from pgdyno.base.errors import LockHeldError
from pgdyno.postgres.connection.connection import connect, connect_to_change

pytestmark = pytest.mark.server

LOCKS = [CHANGING, LOADING]


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.apply.session.session._WAIT_S", 0.3)


@pytest.fixture
def role(pg18: RealServer) -> Iterator[str]:
    """A role that may do nothing but log in."""
    pg18.execute("CREATE ROLE somebody LOGIN")
    yield "somebody"
    pg18.execute("DROP OWNED BY somebody; DROP ROLE somebody")


@contextlib.contextmanager
def session(server: RealServer, role: str) -> Iterator[Connection]:
    with contextlib.closing(connect_to_change(server.dsn_for(role, "postgres"))) as connection:
        yield connection


def planted(connection: Connection, lock: ServerLock) -> None:
    """Take all locks of a number that a role can think of, under the name of a pgdyno."""
    connection.execute("SET application_name = 'pgdyno, process 1 on db.example'")
    connection.execute("SELECT pg_advisory_lock(%s::bigint)", (lock.key,))
    connection.execute("SELECT pg_advisory_lock(%s::int, n) FROM generate_series(0, 999) n", (lock.key,))


@pytest.mark.parametrize("lock", LOCKS, ids=["changing", "loading"])
@pytest.mark.parametrize("database", ["postgres", "template1"])
def test_a_role_without_rights_holds_nobody_up(
    pg18: RealServer, role: str, lock: ServerLock, database: str
) -> None:
    with session(pg18, role) as stranger, session(pg18, "postgres") as ours:
        planted(stranger, lock)
        take(ours, lock)
        with (
            contextlib.closing(connect(pg18.dsn_for("postgres", database))) as other,
            pytest.raises(LockHeldError) as caught,
        ):
            take(other, lock)
        assert f"of role postgres (backend {ours.info.backend_pid})" in (caught.value.detail or "")


@pytest.mark.parametrize(
    ("lock", "right"),
    [
        (CHANGING, "ALTER ROLE somebody SUPERUSER"),
        (CHANGING, "GRANT postgres TO somebody"),
        (CHANGING, "GRANT ALTER SYSTEM ON PARAMETER work_mem TO somebody"),
        (LOADING, "ALTER ROLE somebody CREATEDB"),
    ],
)
def test_a_role_that_may_do_it_is_named_and_can_be_ended(
    pg18: RealServer, role: str, lock: ServerLock, right: str
) -> None:
    pg18.execute(right)
    with session(pg18, role) as first, session(pg18, "postgres") as second:
        take(first, lock)
        pid = first.info.backend_pid
        with pytest.raises(LockHeldError) as caught:
            take(second, lock)
        assert f" of role somebody (backend {pid})" in (caught.value.detail or "")
        hint = (caught.value.hint or "").partition("terminate it: ")[2]
        assert hint == f"SELECT pg_terminate_backend({pid})"
        second.execute(hint.encode())
        take(second, lock)
        with pytest.raises(psycopg.OperationalError):
            first.execute("SELECT 1")


def test_two_of_one_role_exclude_each_other_whatever_it_may_do(pg18: RealServer, role: str) -> None:
    with session(pg18, role) as first, session(pg18, role) as second:
        take(first, CHANGING)
        with pytest.raises(LockHeldError):
            take(second, CHANGING)


@pytest.mark.parametrize("lock", LOCKS, ids=["changing", "loading"])
def test_the_lock_is_one_of_older_servers_too(pg15: RealServer, lock: ServerLock) -> None:
    with session(pg15, "postgres") as first, session(pg15, "postgres") as second:
        take(first, lock)
        with pytest.raises(LockHeldError):
            take(second, lock)
