"""Rows of pg_stat_activity as a sample."""

from __future__ import annotations

import threading
from typing import Any, cast

import psycopg
import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.sampling import activity
from pgdyno.postgres.sampling.activity import ActivitySampling, sample_of
from pgdyno.postgres.waits import ActivitySample, Wait

ROWS = [
    ("client backend", None, None, None, 2),
    ("client backend", "LWLock", "WALWrite", None, 3),
    ("parallel worker", "IPC", "BufferIO", None, 1),
    ("autovacuum worker", "Timeout", "VacuumDelay", None, 2),
    ("autovacuum worker", None, None, None, 1),
    ("walsender", "Client", "WalSenderWaitForWAL", None, 1),
]


def test_clients_and_their_workers_are_busy_and_others_are_not() -> None:
    assert sample_of(ROWS, 1.5) == ActivitySample(
        at_s=1.5,
        waits=((Wait("CPU"), 2), (Wait("LWLock", "WALWrite"), 3), (Wait("IPC", "BufferIO"), 1)),
        is_checkpointing=False,
        autovacuum_workers=3,
    )


def test_a_backend_that_has_become_idle_while_the_server_looked_was_computing() -> None:
    rows = [("client backend", "Client", "ClientRead", None, 2), ("client backend", None, None, None, 1)]
    assert sample_of(rows, 0.0).waits == ((Wait("CPU"), 3),)
    assert sample_of([("client backend", "Client", "ClientWrite", None, 1)], 0.0).waits == (
        (Wait("Client", "ClientWrite"), 1),
    )


def test_a_checkpointer_that_the_query_lists_is_at_work() -> None:
    assert sample_of([("checkpointer", "Timeout", "CheckpointWriteDelay", None, 1)], 0.0).is_checkpointing


def test_an_idle_server_gives_an_empty_sample() -> None:
    assert sample_of([], 0.0) == ActivitySample(0.0)


def test_waits_are_written_as_postgresql_documents_them() -> None:
    assert [str(Wait("IO", "DataFileRead")), str(Wait("CPU"))] == ["IO:DataFileRead", "CPU"]


class Connection:
    """A connection whose server answers no query, or that fails at once with an error of its own."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.is_asked, self.is_cancelled = threading.Event(), threading.Event()

    def execute(self, _sql: str) -> None:
        self.is_asked.set()
        if self.error is not None:
            raise self.error
        self.is_cancelled.wait()
        raise psycopg.errors.QueryCanceled

    def cancel_safe(self, *, timeout: float) -> None:
        assert timeout > 0
        self.is_cancelled.set()


def sampled(connection: Connection) -> ServerError:
    """Return the error of a sampling with this connection."""
    sampling = ActivitySampling(cast("Any", connection), 1, 0.01)
    with pytest.raises(ServerError) as caught, sampling:
        connection.is_asked.wait()
    assert not sampling._thread.is_alive()  # it must not use the connection any more
    return caught.value


@pytest.mark.parametrize(
    "error", [OSError("too many open files"), ValueError("no number"), psycopg.Error("x")]
)
def test_whatever_ends_the_sampling_is_told(error: Exception) -> None:
    found = sampled(Connection(error))
    assert found.message == "could not sample the activity of the server"
    assert found.detail == str(error)


def test_a_query_without_an_answer_is_cancelled_before_the_connection_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity, "_STOP_LIMIT_S", 0.2)
    connection = Connection()
    assert sampled(connection).message.startswith("the server did not respond to a query of its activity")
    assert connection.is_cancelled.is_set()
