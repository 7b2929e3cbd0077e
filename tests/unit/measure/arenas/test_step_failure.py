"""What is said of a step that failed, by what its server says about itself."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pgdyno.base.errors import (
    GeneratorFailedError,
    GeneratorMissingError,
    LoadHostLostError,
    PgdynoError,
    ServerCrashedError,
    StorageError,
)
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.step_failure import failures_named
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection


@dataclass
class Server:
    """A server with a log, that runs or does not."""

    log: str = "LOG:  ready"
    runs: bool = True
    host = dsn = user = ""
    port = 0

    @property
    def pid(self) -> int:
        if not self.runs:
            raise ServerCrashedError("the server is not running any more")
        return 1

    def connect(self, database: str) -> ControlConnection:
        raise NotImplementedError(database)

    def last_log_lines(self) -> str:
        return self.log

    def stop(self, *, is_immediate: bool = False) -> None:
        """Do nothing."""


def failing(server: Server, error: PgdynoError) -> PgdynoError:
    """Return what becomes of an error of step l.i1."""
    with pytest.raises(PgdynoError) as caught, failures_named("l.i1", Arm(Variant("worker"), server)):
        raise error
    return caught.value


def test_step_server_and_log_are_named_and_the_hint_stays() -> None:
    error = failing(Server(), GeneratorFailedError("could not run insert", detail="why", hint="do"))
    assert type(error) is GeneratorFailedError
    assert error.message == "l.i1 on the server of worker failed: could not run insert"
    assert (error.detail, error.hint) == ("why\n         the server's log ends with: LOG:  ready", "do")


def test_a_server_that_has_ended_is_what_is_told() -> None:
    error = failing(Server("PANIC:  it burns", runs=False), GeneratorFailedError("lost a connection"))
    assert type(error) is ServerCrashedError
    assert error.message == "the server of worker ended during l.i1"
    assert error.detail == "lost a connection\n         the server's log ends with: PANIC:  it burns"


@pytest.mark.parametrize("runs", [True, False])
def test_a_full_disk_is_told_with_what_to_do_whether_it_stopped_the_server_or_not(runs: bool) -> None:  # noqa: FBT001 — a parameter of the test
    server = Server("PANIC:  could not write to file: No space left on device", runs)
    error = failing(server, GeneratorFailedError("lost a connection"))
    assert type(error) is StorageError
    assert error.message == "the disk filled up during l.i1 on the server of worker"
    assert error.hint is not None
    assert error.hint.startswith("free space where PGDYNO_HOME is")


def test_other_errors_of_generators_keep_their_class() -> None:
    assert type(failing(Server(), GeneratorMissingError("no driver"))) is GeneratorMissingError


def test_a_load_host_that_was_lost_stays_that() -> None:
    lost = LoadHostLostError("pgdyno-driver on client1 failed", host="client1", detail="Timeout")
    assert failing(Server("PANIC:  it burns", runs=False), lost) is lost


SHARED_MEMORY = 'could not resize shared memory segment "/PostgreSQL.1" to 8 bytes: No space left on device'


def test_a_full_dev_shm_is_not_a_full_disk() -> None:
    error = failing(
        Server(), GeneratorFailedError(f"could not build an index: {SHARED_MEMORY} (SQLSTATE 53100)")
    )
    assert type(error) is StorageError
    assert error.message == "the memory for /dev/shm filled up during l.i1 on the server of worker"
    assert error.hint == (
        "make /dev/shm larger (containers have 64 MB by default), or set "
        "max_parallel_maintenance_workers=0 (for queries max_parallel_workers_per_gather=0)"
    )


def test_an_error_with_a_reason_of_its_own_is_not_explained_by_an_older_line_of_the_log() -> None:
    server = Server("LOG:  could not write a file: No space left on device")
    error = failing(server, GeneratorFailedError('"pi1" does not exist (SQLSTATE 42P01)'))
    assert type(error) is GeneratorFailedError


def test_a_connection_that_ended_with_its_server_is_explained_by_the_log() -> None:
    server = Server("PANIC:  could not write to file: No space left on device\nLOG:  shutting down")
    error = failing(server, GeneratorFailedError("terminating connection (SQLSTATE 57P02)"))
    assert error.message == "the disk filled up during l.i1 on the server of worker"
