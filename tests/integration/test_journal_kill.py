"""apply and revert are killed with SIGKILL at every step; a revert afterwards gives everything back.

Identical ``pg_settings``, identical ``pg_file_settings``, byte-identical files: this is the promise that
the journal exists for. Every step, and PostgreSQL 15, take minutes: `make test` kills after the first step,
after the last one, and wherever the kind of operation changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server, wait_until
from tests.integration.journal_support import (
    NOWHERE,
    access_to,
    auto_conf,
    pg_ctl_restart,
    snapshot,
    under_pg_ctl,
    write_auto_conf,
)
from tests.integration.killed_at_step import SOME_OR_EVERY, Driver, at_steps, driving

from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert

pytestmark = pytest.mark.server

BY_HAND = "# kept by hand\nrandom_page_cost = 2   # set before, not last\nlog_checkpoints = 'on'\n"
RELOADED = {"work_mem": "8MB", "random_page_cost": "1.1"}
RESTARTED = {"work_mem": "8MB", "random_page_cost": "1.1", "shared_buffers": "96MB", "max_wal_senders": "12"}


@pytest.fixture(scope="module", params=["pg18_bin", pytest.param("pg15_bin", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server whose postgresql.auto.conf somebody has written by hand: comments, no quotes."""
    with running_server(request.getfixturevalue(request.param)) as started, under_pg_ctl(started):
        write_auto_conf(started, BY_HAND)
        yield started


@pytest.fixture(scope="module")
def drive(server: RealServer) -> Iterator[Driver]:
    """The driver for that server."""
    with driving(server, settings=RESTARTED, restart_command=pg_ctl_restart(server)) as drive:
        yield drive


def revert_all(server: RealServer, journal: Path, *, has_files: bool = True) -> bool:
    """Revert, and return whether everything is undone and no receipt is open."""
    access = access_to(server, journal, has_files=has_files)
    result = revert(access, RevertRequest(is_all=True, allow_restart=True))
    return result.is_complete and read_journal(journal).open == ()


@SOME_OR_EVERY
@pytest.mark.parametrize("settings", [RELOADED, RESTARTED], ids=["reload", "restart"])
def test_an_apply_killed_at_any_step_is_undone_by_revert(
    server: RealServer, drive: Driver, tmp_path: Path, settings: dict[str, str], *, every: bool
) -> None:
    before = snapshot(server)
    steps = at_steps(
        tmp_path,
        act=lambda journal, step: drive.steps("apply", journal, kill_after=step, settings=settings),
        check=lambda journal: revert_all(server, journal) and snapshot(server) == before,
        every=every,
    )
    assert {f"{verb} {name}" for name in settings for verb in ("receipt", "changed", "verified")} <= set(
        steps
    )
    assert ("restarted" in steps) is (settings is RESTARTED)


@SOME_OR_EVERY
def test_a_revert_killed_at_any_step_is_finished_by_the_next_one(
    server: RealServer, drive: Driver, tmp_path: Path, *, every: bool
) -> None:
    before = snapshot(server)

    def act(journal: Path, step: int | None) -> list[str]:
        assert drive("apply", journal) == "done"
        return drive.steps("revert", journal, kill_after=step)

    steps = at_steps(
        tmp_path,
        act,
        check=lambda journal: revert_all(server, journal) and snapshot(server) == before,
        every=every,
    )
    assert {"before restart", "restarted", "reverted work_mem"} <= set(steps)


@SOME_OR_EVERY
def test_a_killed_revert_of_changes_that_were_never_in_force_is_finished_by_the_next_one(
    server: RealServer, drive: Driver, tmp_path: Path, *, every: bool
) -> None:
    """The server keeps pending_restart marks here, so that values are set in passing to clear them."""
    before = snapshot(server)

    def act(journal: Path, step: int | None) -> list[str]:
        assert drive("apply", journal, kill_at="before restart") == "before restart"
        return drive.steps("revert", journal, kill_after=step)

    steps = at_steps(
        tmp_path,
        act,
        check=lambda journal: revert_all(server, journal) and snapshot(server) == before,
        every=every,
    )
    assert {"intended max_wal_senders", "passed max_wal_senders"} <= set(steps)
    assert "before restart" not in steps


@SOME_OR_EVERY
def test_an_apply_killed_at_any_step_of_its_roll_back_is_undone_by_revert(
    server: RealServer, drive: Driver, tmp_path: Path, *, every: bool
) -> None:
    before = snapshot(server)
    failing = {"settings": RELOADED, "fail_at": "verified work_mem"}
    steps = at_steps(
        tmp_path,
        act=lambda journal, step: drive.steps("apply", journal, kill_after=step, **failing),
        check=lambda journal: revert_all(server, journal) and snapshot(server) == before,
        end="failed at verified work_mem",
        every=every,
    )
    assert {"restored work_mem", "reloaded", "restored file", "reverted random_page_cost"} <= set(steps)


@pytest.mark.parametrize("step", ["restored shared_preload_libraries", "restored work_mem"])
def test_an_apply_killed_while_it_restores_the_files_of_a_server_that_is_down_is_undone_by_revert(
    server: RealServer, drive: Driver, tmp_path: Path, step: str
) -> None:
    before = snapshot(server)
    settings = {"work_mem": "8MB", "shared_preload_libraries": "no_such_library"}
    assert drive("apply", tmp_path / "journal", kill_at=step, settings=settings) == step
    assert not server.takes_connections()
    assert revert_all(server, tmp_path / "journal")
    assert snapshot(server) == before


def is_restarting(server: RealServer) -> bool:
    """Whether a pg_ctl restarts the server."""
    words = {b"restart", os.fsencode(server.data_directory)}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if words <= {*path.read_bytes().split(b"\0")}:
                return True
    return False


@pytest.mark.parametrize(
    "delay_s",
    [0.0, 0.05, 0.2, *(pytest.param(one, marks=pytest.mark.long) for one in (0.01, 0.02, 0.1, 0.3))],
)
def test_an_apply_killed_in_the_middle_of_a_step_is_undone_by_revert(
    server: RealServer, drive: Driver, tmp_path: Path, delay_s: float
) -> None:
    """Wherever the clock happens to strike: the outcome does not depend on it."""
    before = snapshot(server)
    drive("apply", tmp_path / "journal", kill_after_s=delay_s)
    wait_until(lambda: not is_restarting(server))  # that goes on by itself
    assert revert_all(server, tmp_path / "journal")
    assert snapshot(server) == before


@SOME_OR_EVERY
def test_without_access_to_files_a_killed_apply_is_undone_over_the_connection(
    server: RealServer, drive: Driver, tmp_path: Path, *, every: bool
) -> None:
    """Comments cannot come back that way; in the form that ALTER SYSTEM itself writes, everything does."""
    server.execute("ALTER SYSTEM SET log_checkpoints = 'on'")
    server.execute("ALTER SYSTEM SET temp_buffers = '9MB'")
    write_auto_conf(server, auto_conf(server).read_text(encoding="utf-8"))
    before = snapshot(server)
    at_steps(
        tmp_path,
        act=lambda journal, step: drive.steps("apply", journal, kill_after=step, data_directory=str(NOWHERE)),
        check=lambda journal: revert_all(server, journal, has_files=False) and snapshot(server) == before,
        every=every,
    )
    write_auto_conf(server, BY_HAND)
