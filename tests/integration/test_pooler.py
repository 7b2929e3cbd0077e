"""A connection through a pooler: it gives its clients process ids of its own, as PgBouncer does."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from tests.fix_servers import RealServer

from pgdyno.journal.session.session import locked_session
from pgdyno.model.errors import RefusedError
from pgdyno.server.connection.connection import connect

pytestmark = pytest.mark.server

_KEY_DATA = b"K" + struct.pack("!I", 12)  # BackendKeyData; process id and secret follow
_POOLERS_PID = 4242


@pytest.fixture
def pooler(pg18: RealServer) -> Iterator[int]:
    """The port of a pooler with one connection to the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, pg18), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
    thread.join(timeout=10)


def _serve(listening: socket.socket, server: RealServer) -> None:
    with contextlib.suppress(OSError):
        client, _ = listening.accept()
        with client, socket.socket(socket.AF_UNIX) as behind:
            behind.connect(str(server.socket_directory / f".s.PGSQL.{server.port}"))
            threading.Thread(target=_copy, args=(client, behind), daemon=True).start()
            _copy(behind, client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the end, with another process id where the server tells one."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            at = data.find(_KEY_DATA)
            if at >= 0:
                data = data[: at + 5] + struct.pack("!I", _POOLERS_PID) + data[at + 9 :]
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_a_server_behind_a_pooler_is_not_changed(pooler: int) -> None:
    dsn = f"host=127.0.0.1 port={pooler} user=postgres dbname=postgres sslmode=disable gssencmode=disable"
    with (
        pytest.raises(RefusedError) as caught,
        locked_session(lambda: connect(dsn, is_read_only=False)),
    ):
        pytest.fail("the lock was taken")
    assert caught.value.message == "a connection pooler stands before the server"
    assert f"the connection has process id {_POOLERS_PID}, and the server says " in (
        caught.value.detail or ""
    )
    assert "--dsn 'host=… port=5432'" in (caught.value.hint or "")
