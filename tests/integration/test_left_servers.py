"""Scratch servers that a killed pgdyno has left: ended, and only then removed, by whoever comes next."""

from __future__ import annotations

import fcntl
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import wait_until

from pgdyno.base.errors import LeftServerWarning, ServerError
from pgdyno.postgres.process import orphaned_servers
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.orphaned_servers import end_left, recorded
from pgdyno.postgres.process.processes import children, is_alive, is_stopped
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, workspace: Workspace) -> Workspace:
    """Return a workspace that no other test uses, where the servers' account can reach it."""
    root = workspace.root / tmp_path_factory.mktemp("own").name
    root.mkdir(mode=0o755)
    return Workspace(root, workspace.account)


@pytest.fixture
def leave(place: Workspace, installation: Installation) -> Iterator[Callable[[], tuple[int, Path]]]:
    """Return a function that leaves a server: the postmaster's number, and its data directory.

    Its postmaster is stopped before the process that started it is killed: no signal ends it.
    """
    left = []

    def leave_one() -> tuple[int, Path]:
        pid, data_directory = _left(place, installation)
        left.append(pid)
        return pid, data_directory

    yield leave_one
    for pid in left:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def _left(place: Workspace, installation: Installation) -> tuple[int, Path]:
    reading, writing = os.pipe()
    if (starter := os.fork()) == 0:
        try:
            with place.scratch() as scratch, place.sockets(scratch) as sockets:
                initialise(installation, place.account, scratch / "data")
                server = Instance(installation, place.account, scratch / "data", sockets, 5432)
                server.start()
                os.write(writing, f"{server.pid} {server.data_directory}".encode())
                signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    pid, directory = os.read(reading, 4096).decode().split(" ", 1)
    os.close(reading)
    os.kill(int(pid), signal.SIGSTOP)
    wait_until(lambda: is_stopped(int(pid)))
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    return int(pid), Path(directory)


def test_it_is_ended_before_its_directory_is_removed(
    place: Workspace, leave: Callable[[], tuple[int, Path]]
) -> None:
    pid, data_directory = leave()
    everybody = [pid, *children(pid)]
    said = f"ended a server left running by a killed pgdyno: {data_directory}"
    with pytest.warns(LeftServerWarning, match=f"^{said}$"), place.measuring():
        pass
    assert not any(map(is_alive, everybody))
    assert not data_directory.parent.exists()
    with place.measuring():  # and says nothing more: a warning would be an error here
        pass


def test_a_dry_run_leaves_it(place: Workspace, leave: Callable[[], tuple[int, Path]]) -> None:
    pid, data_directory = leave()
    done = pgdyno("revert", "--host-only", "--dry-run", PGDYNO_HOME=str(place.root))
    assert (done.returncode, done.stderr) == (0, "")
    assert is_alive(pid)
    assert data_directory.exists()


def test_processes_that_have_outlived_their_postmaster_are_ended_too(
    place: Workspace, leave: Callable[[], tuple[int, Path]]
) -> None:
    pid, data_directory = leave()
    (outliving, *_) = children(pid)
    os.kill(outliving, signal.SIGSTOP)
    wait_until(lambda: is_stopped(outliving))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    assert is_stopped(outliving)
    with pytest.warns(LeftServerWarning):
        place.remove_orphans()
    assert not is_alive(outliving)
    assert not data_directory.parent.exists()


def test_the_server_of_a_pgdyno_that_lives_is_left_alone(
    place: Workspace, installation: Installation
) -> None:
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        server = Instance(installation, place.account, scratch / "data", sockets, 5432)
        with server.running(is_immediate=True):
            done = pgdyno("status", PGDYNO_HOME=str(place.root))
            assert (done.returncode, done.stderr) == (0, "")
            with server.connect() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)


@contextmanager
def holder(data_directory: Path, words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that has inherited the lock of a server."""
    with recorded(data_directory) as lock, subprocess.Popen(words, pass_fds=(lock,)) as process:
        yield process
        process.kill()


@pytest.mark.root
def test_a_process_of_another_user_is_not_ended_and_nothing_is_removed(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was taken over could hand its lock to any process that takes descriptors."""
    monkeypatch.setattr(orphaned_servers, "_LIMIT_S", 0.2)
    scratch = place.root / "scratch/run-left"
    (scratch / "data").mkdir(parents=True)
    current_account().own(scratch / "data")
    (scratch / "in-use.lock").touch()
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, current_account().uid))
    as_other = ["setpriv", f"--reuid={other.pw_uid}", "sleep", "100"]
    with (
        holder(scratch / "data", current_account().run_as(["sleep", "100"])) as ours,
        holder(scratch / "data", as_other) as theirs,
    ):
        wait_until(lambda: Path(f"/proc/{theirs.pid}").stat().st_uid == other.pw_uid)
        wait_until(lambda: Path(f"/proc/{ours.pid}").stat().st_uid == current_account().uid)
        with pytest.raises(ServerError) as caught:
            place.remove_orphans()
        assert (ours.wait(), theirs.poll()) == (-signal.SIGINT, None)
        assert (scratch / "data").is_dir()
    assert caught.value.message == f"could not end a server on {scratch}/data left running by a killed pgdyno"
    assert caught.value.hint == (
        f"kill the processes that have {scratch}/data.server open: fuser {scratch}/data.server"
    )


def test_who_only_looks_at_a_record_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with recorded(tmp_path / "data"):
        pass
    with (tmp_path / "data.server").open() as record:
        watching = subprocess.Popen(["sleep", "100"], stdin=record)
    locking = subprocess.Popen(["flock", "--shared", str(tmp_path / "data.server"), "sleep", "100"])
    wait_until(lambda: not _is_free(tmp_path / "data.server"))
    assert end_left(tmp_path) == [tmp_path / "data"]
    assert watching.poll() is None
    watching.kill()
    assert (locking.wait(), watching.wait()) == (-signal.SIGINT, -signal.SIGKILL)


def _is_free(record: Path) -> bool:
    with record.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
