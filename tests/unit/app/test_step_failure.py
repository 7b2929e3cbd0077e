"""What is said of a step that failed, by what its server says about itself."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from pgdyno.app.arm import Arm
from pgdyno.app.step_failure import failures_named
from pgdyno.model.errors import (
    GeneratorFailedError,
    GeneratorMissingError,
    PgdynoError,
    ServerCrashedError,
    StorageError,
)
from pgdyno.model.variant import Variant


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

    def connect(self, database: str) -> psycopg.Connection:
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
    assert error.hint.startswith("make room where PGDYNO_HOME is")


def test_other_errors_of_generators_keep_their_class() -> None:
    assert type(failing(Server(), GeneratorMissingError("no driver"))) is GeneratorMissingError
