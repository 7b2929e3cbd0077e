"""``pgdyno run insert-benchmark`` when the server goes away, or the disk fills up, in the middle of a step.

Sizes are such that the step in question does not end by itself before that happens.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.fix_disk import small_disk
from tests.fix_servers import wait_until
from tests.integration.steps_under_way import Running, running

DISK_BYTES = (
    2 << 30
)  # pgdyno begins only if there is room for what it knows of; only what is used costs memory

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("pg18_bin")]


def loss(run: Running, home: Path) -> str:
    """Return the error of a run that has failed, and see that nothing of it is left."""
    said = run.end()
    wait_until(lambda: not run.has_left_processes())
    assert not [*(home / "scratch").iterdir()]
    return said[said.index("pgdyno: ERROR:") :]


@contextmanager
def holding(run: Running, statement: str) -> Iterator[None]:
    """Hold what a statement has locked, in a transaction that ends with its server."""
    with closing(run.connect()) as connection:
        connection.execute("BEGIN")
        connection.execute(statement.encode())
        yield


def test_a_server_that_is_killed_while_rows_are_loaded_is_named_with_its_step(home: Path) -> None:
    with running("30000000/50/5") as run:
        run.await_step("l.i0")
        run.backend("insert into pi1 %")
        os.kill(run.postmaster(), signal.SIGKILL)
        error = loss(run, home)
    assert "the server of default ended during insert-benchmark-l.i0  (PGD-303)" in error
    assert "lost a connection to default (" in error
    assert "its log says why" in error


def test_a_backend_that_is_killed_while_rows_are_inserted_is_told_with_the_servers_log(home: Path) -> None:
    with running("1000/10000000/5") as run:
        run.await_step("l.i1")
        os.kill(run.backend("insert into pi1 %"), signal.SIGKILL)
        error = loss(run, home)
    assert "insert-benchmark-l.i1 on the server of default failed: lost a connection to default (" in error
    assert "was terminated by signal 9: Killed" in error


def test_a_backend_that_is_killed_while_it_builds_an_index(home: Path) -> None:
    with running("100000/50/5") as run:
        run.await_step("l.i0")
        run.backend("insert into pi1 %")
        # An index build waits for those who write.
        with holding(run, "LOCK TABLE pi1 IN ROW EXCLUSIVE MODE"):
            os.kill(run.backend("create index %"), signal.SIGKILL)
            error = loss(run, home)
    assert "insert-benchmark-l.x on the server of default failed: " in error
    assert "was terminated by signal 9: Killed" in error


def test_a_server_that_is_stopped_while_it_cleans_up(home: Path) -> None:
    with running("1000/500/1000") as run:
        run.await_step("l.i1")
        # A vacuum waits for another one's lock.
        with holding(run, "LOCK TABLE pi1 IN SHARE UPDATE EXCLUSIVE MODE"):
            run.backend("vacuum %")
            os.kill(run.postmaster(), signal.SIGINT)
            error = loss(run, home)
    assert "insert-benchmark-clean-up" in error
    assert "terminating connection due to administrator command" in error


def test_a_server_that_is_killed_while_it_answers_queries(home: Path) -> None:
    with running("1000/50/5", "--step-seconds", "60") as run:
        run.await_step("qr100")
        run.backend("SELECT % FROM pi1 WHERE %")
        os.kill(run.postmaster(), signal.SIGKILL)
        error = loss(run, home)
    assert "the server of default ended during insert-benchmark-qr100  (PGD-303)" in error


def test_a_table_that_vanishes_ends_the_trial_with_its_sqlstate(home: Path) -> None:
    with running("1000/10000000/5") as run:
        run.await_step("l.i1")
        run.backend("insert into pi1 %")
        with run.connect() as connection:
            connection.execute("ALTER TABLE pi1 RENAME TO pi1_renamed")
        error = loss(run, home)
    assert "insert-benchmark-l.i1 on the server of default failed: could not run " in error
    assert '"pi1" does not exist (SQLSTATE 42P01)' in error


def test_a_disk_that_fills_up_is_named_with_what_to_do(home: Path) -> None:
    with small_disk(DISK_BYTES) as disk, running("600000/50/5", PGDYNO_HOME=str(disk.directory)) as run:
        run.await_step("l.i0")
        # The run takes room meanwhile, and may be the first to find none.
        with (disk.directory / "most-of-it").open("wb") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk.directory).free - (64 << 20))
        disk.fill()
        error = loss(run, disk.directory)
    assert "the disk filled up during insert-benchmark-l.i0 on the server of default  (PGD-500)" in error
    assert "free space where PGDYNO_HOME is" in error
