"""Rows of pg_stat_activity as a sample."""

from __future__ import annotations

from pgdyno.model.activity import ActivitySample, Wait
from pgdyno.server.activity import sample_of

ROWS = [
    ("client backend", None, None, 2),
    ("client backend", "LWLock", "WALWrite", 3),
    ("parallel worker", "IPC", "BufferIO", 1),
    ("autovacuum worker", "Timeout", "VacuumDelay", 2),
    ("autovacuum worker", None, None, 1),
    ("walsender", "Client", "WalSenderWaitForWAL", 1),
]


def test_clients_and_their_workers_are_busy_and_others_are_not() -> None:
    assert sample_of(ROWS, 1.5) == ActivitySample(
        at_s=1.5,
        waits=((Wait("CPU"), 2), (Wait("LWLock", "WALWrite"), 3), (Wait("IPC", "BufferIO"), 1)),
        is_checkpointing=False,
        autovacuum_workers=3,
    )


def test_a_backend_that_has_become_idle_while_the_server_looked_was_computing() -> None:
    rows = [("client backend", "Client", "ClientRead", 2), ("client backend", None, None, 1)]
    assert sample_of(rows, 0.0).waits == ((Wait("CPU"), 3),)
    assert sample_of([("client backend", "Client", "ClientWrite", 1)], 0.0).waits == (
        (Wait("Client", "ClientWrite"), 1),
    )


def test_a_checkpointer_that_the_query_lists_is_at_work() -> None:
    assert sample_of([("checkpointer", "Timeout", "CheckpointWriteDelay", 1)], 0.0).is_checkpointing


def test_an_idle_server_gives_an_empty_sample() -> None:
    assert sample_of([], 0.0) == ActivitySample(0.0)


def test_waits_are_written_as_postgresql_documents_them() -> None:
    assert [str(Wait("IO", "DataFileRead")), str(Wait("CPU"))] == ["IO:DataFileRead", "CPU"]
