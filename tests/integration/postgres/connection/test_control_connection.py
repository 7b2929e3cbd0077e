"""Connections with limits, to a real server through a peer that loses or adds messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, running_server
from tests.hostile.behaviours import endless
from tests.hostile.peer import Behaviour, Instead, Message, Peer, Sent

from pgdyno.postgres.connection import control_connection
from pgdyno.postgres.connection.connection import open_session

pytestmark = pytest.mark.server
PARAMETERS = endless(lambda number: Message(b"S", b"p%d\0x\0" % number).encoded() * 2000)


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin) as started:
        yield started


@pytest.fixture(autouse=True)
def asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_connection, "_CHECK_EVERY_S", 0.2)


def before(server: RealServer, behaviour: Callable[[], Behaviour]) -> Peer:
    return Peer(server.socket_directory / f".s.PGSQL.{server.port}", behaviour)


def on_checkpoints(act: Callable[[Message], Iterable[Sent]]) -> Behaviour:
    """Act on the answers to CHECKPOINT."""

    def behave(message: Message) -> Iterable[Sent]:
        return act(message) if message.body == b"CHECKPOINT\0" else (message.encoded(),)

    return behave


def test_a_statement_may_take_as_long_as_the_server_works_on_it(server: RealServer) -> None:
    with open_session(server.dsn) as connection:
        connection.answer_limit_s = 0.5
        with connection.waiting_for_hours(partial(open_session, server.dsn)):
            assert connection.execute("SELECT 1 FROM pg_sleep(1)").fetchall() == [(1,)]
        assert connection.answer_limit_s == 0.5


def test_a_lost_answer_is_not_waited_for(server: RealServer) -> None:
    silent = partial(on_checkpoints, lambda _: (Instead.SILENCE,))
    with before(server, silent) as peer, open_session(peer.dsn) as connection:
        with (
            pytest.raises(psycopg.OperationalError, match="finished a statement, but its response"),
            connection.waiting_for_hours(partial(open_session, peer.dsn)),
        ):
            connection.execute("CHECKPOINT")
        assert connection.closed


def test_messages_that_complete_no_answer_are_not_read_for_hours(server: RealServer) -> None:
    # On a busy machine the server is looked at first, and has finished.
    said = "keeps sending without completing a response|finished a statement, but its response"
    with before(server, partial(on_checkpoints, PARAMETERS)) as peer, open_session(peer.dsn) as connection:
        with (
            pytest.raises(psycopg.OperationalError, match=said),
            connection.waiting_for_hours(partial(open_session, server.dsn)),
        ):
            connection.execute("CHECKPOINT")
        assert connection.closed


def test_a_message_too_large_is_not_waited_for(server: RealServer) -> None:
    """It is refused by its length: the peer sends nothing else of it."""

    def announced(message: Message) -> Iterator[Sent]:
        yield b"D" + (300 << 20).to_bytes(4, "big")
        yield Instead.SILENCE

    with before(server, partial(on_checkpoints, announced)) as peer, open_session(peer.dsn) as connection:
        with pytest.raises(psycopg.OperationalError, match="takes too much memory"):
            connection.execute("CHECKPOINT")
        assert connection.closed
