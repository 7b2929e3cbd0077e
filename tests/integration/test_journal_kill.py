"""apply and revert are killed with SIGKILL at every step; a revert afterwards gives everything back.

Identical ``pg_settings``, identical ``pg_file_settings``, byte-identical files: this is the promise that
the journal exists for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server
from tests.integration.journal_support import access_to, auto_conf, snapshot, under_pg_ctl, write_auto_conf

from pgdyno.app.revert import RevertRequest, revert
from pgdyno.journal.log import read_journal
from pgdyno.journal.restart import CommandRestarter

pytestmark = pytest.mark.server

DRIVER = Path(__file__).with_name("journal_driver.py")
BY_HAND = "# kept by hand\nrandom_page_cost = 2   # set before, not last\nlog_checkpoints = 'on'\n"
RELOADED = {"work_mem": "8MB", "random_page_cost": "1.1"}
RESTARTED = {"work_mem": "8MB", "random_page_cost": "1.1", "shared_buffers": "96MB", "max_wal_senders": "12"}
MOST_STEPS = 60


@pytest.fixture(scope="module", params=["pg18_bin", "pg15_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server whose postgresql.auto.conf somebody has written by hand: comments, no quotes, two entries."""
    with running_server(request.getfixturevalue(request.param)) as started, under_pg_ctl(started):
        write_auto_conf(started, BY_HAND)
        yield started


def drive(server: RealServer, journal: Path, action: str, kill_after: int, **task: object) -> list[str]:
    """Run the driver and return what it printed: the step it was killed at, or "done"."""
    restarter = access_to(server, journal).restarter
    assert isinstance(restarter, CommandRestarter)
    document = {
        "action": action,
        "kill_after": kill_after,
        "dsn": server.dsn,
        "journal": str(journal),
        "data_directory": None,
        "restart_command": restarter.command,
        **task,
    }
    done = subprocess.run(
        [sys.executable, str(DRIVER), json.dumps(document)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("settings", "has_restart"), [(RELOADED, False), (RESTARTED, True)], ids=["reload", "restart"]
)
def test_an_apply_killed_at_any_step_is_undone_by_revert(
    server: RealServer, tmp_path: Path, settings: dict[str, str], *, has_restart: bool
) -> None:
    before = snapshot(server)
    steps = []
    for kill_after in range(1, MOST_STEPS):
        journal = tmp_path / f"journal-{kill_after}"
        said = drive(server, journal, "apply", kill_after, settings=settings, restart=has_restart)
        result = revert(access_to(server, journal), RevertRequest(allow_restart=True))
        assert result.is_complete, said
        assert snapshot(server) == before, said
        assert read_journal(journal).open == ()
        steps += said
        if said == ["done"]:
            break
    assert steps[-1] == "done"
    assert {f"receipt {name}" for name in settings} <= set(steps)
    assert {f"changed {name}" for name in settings} <= set(steps)
    assert ("restarted" in steps) is has_restart


def test_a_revert_killed_at_any_step_is_finished_by_the_next_one(server: RealServer, tmp_path: Path) -> None:
    before = snapshot(server)
    steps = []
    for kill_after in range(1, MOST_STEPS):
        journal = tmp_path / f"journal-{kill_after}"
        assert drive(server, journal, "apply", 0, settings=RESTARTED, restart=True) == ["done"]
        said = drive(server, journal, "revert", kill_after)
        assert revert(access_to(server, journal), RevertRequest(allow_restart=True)).is_complete, said
        assert snapshot(server) == before, said
        steps += said
        if said == ["done"]:
            break
    assert steps[-1] == "done"
    assert {"before restart", "restarted"} <= set(steps)


def test_a_revert_of_changes_that_were_never_in_force_is_finished_by_the_next_one(
    server: RealServer, tmp_path: Path
) -> None:
    """The server keeps pending_restart marks here, so that values are set in passing to clear them."""
    before = snapshot(server)
    count = {"apply": _steps_until(server, tmp_path / "count", "before restart")}
    steps = []
    for kill_after in range(1, MOST_STEPS):
        journal = tmp_path / f"journal-{kill_after}"
        said = drive(server, journal, "apply", count["apply"], settings=RESTARTED, restart=True)
        assert said == ["before restart"]
        said = drive(server, journal, "revert", kill_after)
        assert revert(access_to(server, journal), RevertRequest(allow_restart=True)).is_complete, said
        assert snapshot(server) == before, said
        steps += said
        if said == ["done"]:
            break
    assert steps[-1] == "done"
    assert "passed max_wal_senders" in steps


def _steps_until(server: RealServer, directory: Path, wanted: str) -> int:
    for kill_after in range(1, MOST_STEPS):
        journal = directory / str(kill_after)
        said = drive(server, journal, "apply", kill_after, settings=RESTARTED, restart=True)
        revert(access_to(server, journal), RevertRequest(allow_restart=True))
        if said == [wanted]:
            return kill_after
    pytest.fail(f"apply has no step {wanted!r}")


@pytest.mark.parametrize("delay_s", [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])
def test_an_apply_killed_in_the_middle_of_a_step_is_undone_by_revert(
    server: RealServer, tmp_path: Path, delay_s: float
) -> None:
    """Wherever the clock happens to strike: the outcome must not depend on it."""
    before = snapshot(server)
    restarter = access_to(server, tmp_path).restarter
    assert isinstance(restarter, CommandRestarter)
    task = {
        "action": "apply", "kill_after": 0, "dsn": server.dsn, "journal": str(tmp_path / "journal"),
        "data_directory": None, "restart_command": restarter.command, "settings": RESTARTED, "restart": True,
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, str(DRIVER), json.dumps(task)], stdout=subprocess.DEVNULL)
    _wait_for(tmp_path / "journal" / "journal.jsonl", process)
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert revert(access_to(server, tmp_path / "journal"), RevertRequest(allow_restart=True)).is_complete
    assert snapshot(server) == before


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        return


def test_without_access_to_files_a_killed_apply_is_undone_over_the_connection(
    server: RealServer, tmp_path: Path
) -> None:
    """A file written by hand cannot keep its comments then; one that ALTER SYSTEM wrote keeps everything."""
    server.execute("ALTER SYSTEM SET log_checkpoints = 'on'")  # the server's own form, from here on
    server.execute("ALTER SYSTEM SET temp_buffers = '9MB'")
    server.execute("SELECT pg_reload_conf()")
    write_auto_conf(server, auto_conf(server).read_text(encoding="utf-8"))
    before = snapshot(server)
    steps = []
    for kill_after in range(1, MOST_STEPS):
        journal = tmp_path / f"journal-{kill_after}"
        said = drive(
            server, journal, "apply", kill_after, settings=RESTARTED, restart=True, data_directory="/nonexistent"
        )
        access = access_to(server, journal, has_files=False)
        assert revert(access, RevertRequest(allow_restart=True)).is_complete, said
        assert snapshot(server) == before, said
        steps += said
        if said == ["done"]:
            break
    assert steps[-1] == "done"
    write_auto_conf(server, BY_HAND)
