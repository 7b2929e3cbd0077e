"""What is said when the server has gone while its evidence is collected."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from pgdyno.base.errors import ConnectionFailedError, ServerCrashedError
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.studies.bundled.insert_benchmark.sampler import _directory_bytes, witness

NOBODY = 4_194_305  # above the largest process id that Linux gives


@dataclass
class Server:
    """A server whose postmaster's end nobody has noticed yet, and that takes no connection."""

    pid: int = NOBODY
    host = dsn = user = ""
    port = 0

    def connect(self, database: str) -> ControlConnection:
        raise psycopg.OperationalError(
            f'connection failed: connection to server on socket "/s" failed: too many clients: {database}'
        )

    def last_log_lines(self) -> str:
        return "LOG:  shutting down"

    def stop(self, *, is_immediate: bool = False) -> None:
        """Do nothing."""


def test_a_postmaster_that_has_gone_has_no_data_directory_any_more() -> None:
    with pytest.raises(ServerCrashedError) as caught:
        _directory_bytes(Arm(Variant("worker"), Server()))
    assert caught.value.message == "the server of worker is no longer running"
    assert caught.value.detail == "LOG:  shutting down"


def test_a_server_that_is_full_is_told_as_that() -> None:
    split = CpuSplit(server=(0,), client=(0,), is_isolated=False)
    with (
        pytest.raises(ConnectionFailedError) as caught,
        witness(Arm(Variant("worker"), Server()), split, interval_s=1.0),
    ):
        pass
    assert caught.value.message == "could not connect to the server of worker"
    assert "too many clients: bench" in (caught.value.detail or "")
