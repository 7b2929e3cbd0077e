"""A patched server reports what its sessions do as a released one does."""

from __future__ import annotations

import time

import pytest
from tests.fix_servers import RealServer
from tests.integration.patches.wire import PATCHED_BUILD, TEXT, Wire, framed, rows_of

pytestmark = PATCHED_BUILD

OWN = (
    b"SELECT (state_change >= query_start)::int, (query_start = statement_timestamp())::int "
    b"FROM pg_stat_activity WHERE pid = pg_backend_pid()"
)
STATEMENTS = (
    b"SELECT 1", b"SELECT 1, 2", b"SET work_mem = '4MB'", b"SELECT 1; SELECT 2", b"SELECT 3; RESET work_mem",
    b"DO $$ BEGIN PERFORM 4; END $$", b"BEGIN", b"SELECT 'in a transaction'", b"SELECT 1 / 0", b"SELECT 5",
    b"ROLLBACK", b"PREPARE p AS SELECT 6", b"EXECUTE p", b"DEALLOCATE p", b"SELECT no_such_column", b"",
)  # fmt: skip
protocols = pytest.mark.parametrize("protocol", ["simple", "extended"])
ENOUGH_S = 0.3
LIMIT_S = 30.0


def values(row: bytes) -> list[bytes | None]:
    """Return the values of a row."""
    found: list[bytes | None] = []
    at = 2
    while at < len(row):
        length = int.from_bytes(row[at : at + 4], "big", signed=True)
        found.append(None if length < 0 else row[at + 4 : at + 4 + length])
        at += 4 + max(length, 0)
    return found


def asked(wire: Wire, statement: bytes, protocol: str) -> list[tuple[bytes, bytes]]:
    """Ask by one of the protocols."""
    return wire.execute(statement, TEXT) if protocol == "extended" else wire.query(statement)


def seen(server: RealServer, protocol: str) -> list[list[bytes | None]]:
    """Return what another session sees of one after each of its statements."""
    wire, observer = Wire(server), Wire(server)
    (pid,) = values(rows_of(wire.query(b"SELECT pg_backend_pid()"))[0])
    assert pid is not None
    wire.query(b"SET compute_query_id = on")
    found = []
    for statement in STATEMENTS:
        asked(wire, statement, protocol)
        (row,) = rows_of(
            observer.query(b"SELECT state, query, query_id FROM pg_stat_activity WHERE pid = " + pid)
        )
        found.append(values(row))
    for one in (wire, observer):
        one.close()
    return found


@protocols
def test_a_session_changed_its_state_no_earlier_than_its_statement_began(
    released: RealServer, patched: RealServer, protocol: str
) -> None:
    for server in (released, patched):
        wire = Wire(server)
        for _ in range(30):
            (row,) = rows_of(asked(wire, OWN, protocol))
            assert values(row) == [b"1", b"1"]
        wire.close()


@protocols
def test_others_see_the_same(released: RealServer, patched: RealServer, protocol: str) -> None:
    of_released = seen(released, protocol)
    assert of_released == seen(patched, protocol)
    assert {state for state, _, _ in of_released} == {
        b"idle", b"idle in transaction", b"idle in transaction (aborted)",
    }  # fmt: skip
    identifiers = {identifier for _, _, identifier in of_released} - {None}
    assert len(identifiers) >= 5


def test_a_statement_that_runs_is_seen_with_its_identifier(released: RealServer, patched: RealServer) -> None:
    """Its own one, not that of a statement within it."""
    found = []
    for server in (released, patched):
        wire, observer = Wire(server), Wire(server)
        wire.query(b"SET compute_query_id = on")
        wire.send(framed(b"Q", b"DO $$ BEGIN PERFORM 1, 2; PERFORM pg_sleep(2); END $$\0"))
        rows: list[bytes] = []
        deadline = time.monotonic() + LIMIT_S
        while not rows and time.monotonic() < deadline:
            rows = rows_of(
                observer.query(
                    b"SELECT query_id FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'"
                )
            )
        found.append(rows)
        wire.messages()
        for one in (wire, observer):
            one.close()
    assert found[0] == found[1]
    assert len(found[0]) == 1
    assert values(found[0][0])[0] is not None


def test_time_is_counted_as_active_or_idle_in_a_transaction(
    released: RealServer, patched: RealServer
) -> None:
    for server in (released, patched):
        active, idle = counted_times(server)
        assert min(active, idle) >= ENOUGH_S * 1000 - 1  # counted in microseconds, by two clocks


def counted_times(server: RealServer) -> tuple[float, float]:
    """Return the milliseconds that were counted for a session that did something, and then nothing."""
    server.execute("CREATE DATABASE timed")
    wire = Wire(server, "timed")
    wire.query(f"BEGIN; SELECT pg_sleep({ENOUGH_S})".encode())
    time.sleep(ENOUGH_S)
    wire.query(b"COMMIT")
    wire.send(framed(b"X", b""))
    counted = "SELECT active_time, idle_in_transaction_time FROM pg_stat_database WHERE datname = 'timed'"
    deadline = time.monotonic() + LIMIT_S
    while server.execute(counted)[0][0] == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    ((active, idle),) = server.execute(counted)
    wire.close()
    return active, idle
