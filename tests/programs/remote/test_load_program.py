"""A driver as it runs on a load host: sent to a python3 here. A script of the shell stands for it."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_load_host import (
    OBEDIENT,
    SAYS_ITS_VERSION,
    alone_on_this_machine,
    driver,
    failure,
    failure_of,
    sending,
    there,
)
from tests.fix_servers import wait_until

from pgdyno.base.errors import GeneratorFailedError, LoadHostLostError
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.postgres.process.processes import is_alive
from pgdyno.remote import _load_program, _runner_program
from pgdyno.remote.load_driver import new_owner


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Run one of these tests at a time on a machine: its load host takes one load."""
    with alone_on_this_machine():
        yield


def test_its_logs_come_here_and_nothing_stays_there(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    with closing(driver(tmp_path, sent, OF_THE_LOGIN="more")) as process:
        process.start("{}")
        assert process.pids == ()  # none of this host's that issues load
        process.stop()
    assert TransactionLog(tmp_path / "first").read_new() == b"serve s3cret \n"
    assert TransactionLog(tmp_path / "second").read_new().split() == [b"%d" % n for n in range(1, 100_001)]
    assert list(there(tmp_path).iterdir()) == []


def test_its_password_is_on_no_command_line(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT + "tr '\\0' ' ' </proc/$$/cmdline >0.0\n")
    assert "s3cret" not in " ".join(sent.argv)
    with closing(driver(tmp_path, sent)) as process:
        process.start("{}")
        process.stop()
    (there_it_was,) = (tmp_path / "first.0").read_text().splitlines()
    assert there_it_was.endswith("/pgdyno-driver serve ")
    assert "s3cret" not in there_it_was


def test_it_ends_with_its_input(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + 'read job; echo \'{"event": "ready"}\'\nread stop\nexit 3\n')
    process = driver(tmp_path, sent)
    process.start("{}")
    (own,) = there(tmp_path).iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    started = process._process
    assert started is not None
    assert started.stdin is not None
    started.stdin.close()  # as when ssh is ended
    assert started.wait(120) == 1
    assert not own.exists()
    process.close()


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    sent = sending(
        tmp_path, SAYS_ITS_VERSION + 'read job; echo \'{"event": "ready"}\'\nexec sleep 600\n', 600
    )
    with closing(driver(tmp_path, sent)) as process:
        process.start("{}")
        assert process._process is not None
        process._process.send_signal(signal.SIGALRM)
        with pytest.raises(GeneratorFailedError) as caught:
            process.receive(120)
    assert caught.value.message == "pgdyno-driver on client1 failed: it ended before it was stopped"
    assert caught.value.detail == "the time of the load is over"
    assert list(there(tmp_path).iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_driver_ends_with_its_starter(tmp_path: Path, number: signal.Signals) -> None:
    tells_its_pid = "echo $$ >pid; mv pid ../../pid\n"
    script = 'read job; echo \'{"event": "ready"}\'\n' + tells_its_pid + "exec sleep 600\n"
    with closing(driver(tmp_path, sending(tmp_path, SAYS_ITS_VERSION + script))) as process:
        process.start("{}")
        assert process._process is not None
        wait_until((tmp_path / "pid").exists)
        process._process.send_signal(number)
        assert process._process.wait(120) == (1 if number is signal.SIGTERM else -number)
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not is_alive(pid))
    assert len(list(there(tmp_path).iterdir())) == (number is signal.SIGKILL)


def test_one_that_was_cut_off_is_ended_and_taken_away_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = new_owner()
    script = 'read job; echo \'{"event": "ready"}\'\nexec sleep 600\n'
    monkeypatch.setenv("TMPDIR", str(there(tmp_path)))
    with closing(driver(tmp_path, sending(tmp_path, SAYS_ITS_VERSION + script, owner=owner))) as process:
        process.start("{}")
        assert _runner_program.take_away({"owner": new_owner()}) == {"ended": 0}
        (there(tmp_path) / f"{owner}-of-a-killed-one").mkdir()
        (there(tmp_path) / "pgdyno-load-of-others").mkdir()
        assert _runner_program.take_away({"owner": owner})["ended"] > 0
        with pytest.raises(LoadHostLostError) as caught:
            process.receive(120)
    assert (caught.value.host, caught.value.detail) == ("client1", "the time of the load is over")
    assert [path.name for path in there(tmp_path).iterdir()] == ["pgdyno-load-of-others"]


def test_what_is_no_event_is_told(tmp_path: Path) -> None:
    error = failure(
        tmp_path, sending(tmp_path, SAYS_ITS_VERSION + "read job; echo 'hello [you]'; read stop\n")
    )
    assert error.message == "pgdyno-driver on client1 failed: it sent 'hello [you]\\n', which is not an event"
    assert error.hint == "pgdyno cell check checks client1 and the network between"


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (r"""printf '{"event": "\377"}\n'""", r"""it sent '{"event": "\ufffd"}\n', which is not an event"""),
        (
            "head -c 100000 /dev/zero | tr '\\0' '['; echo",
            f"it sent '{80 * '['}', which is not an event",
        ),
        ("""echo '{"event": "error"}'""", "it reports an error without a message"),
        ("yes x | tr -d '\\n'", "it sent a line of more than 1\N{NO-BREAK SPACE}MB"),
        ("""yes '{"event": "slice"}'""", 'it sent "slice" instead of "ready"'),
    ],
)
def test_what_no_driver_says_is_told(tmp_path: Path, says: str, said: str) -> None:
    error = failure(tmp_path, sending(tmp_path, SAYS_ITS_VERSION + f"read job; {says}; read stop\n"))
    assert error.message == f"pgdyno-driver on client1 failed: {said}"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"most_log_bytes": 100_000}, "its logs have more than 97.7\N{NO-BREAK SPACE}kB"),
        ({"logs_limit_s": 0.0}, "its logs did not come within 0\N{NO-BREAK SPACE}s"),
    ],
)
def test_logs_have_limits(tmp_path: Path, limits: dict[str, Any], said: str) -> None:
    process = driver(tmp_path, sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT))
    assert process.distance is not None
    process.distance = replace(process.distance, **limits)
    assert failure_of(process).message == f"pgdyno-driver on client1 failed: {said}"


def test_all_that_reaches_the_host_is_ended(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    jumping = f"sleep 600 & echo $! >{shlex.quote(str(tmp_path))}/pid; exec {shlex.join(sent.argv)}"
    with closing(driver(tmp_path, replace(sent, argv=["sh", "-c", jumping]))) as process:
        process.start("{}")
        pid = int((tmp_path / "pid").read_text())
        assert is_alive(pid)
    wait_until(lambda: not is_alive(pid))


def test_one_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.load.driver_process._END_TIMEOUT_S", 1.0)
    says = """echo '{"event": "ready"}'; read job; echo '{"event": "phase"}'; echo '{"event": "end"}'"""
    script = f"{says}; exec sleep 600 >/dev/null"
    error = failure_of(DriverProcess(["sh", "-c", script], list, {}, tmp_path / "output"))
    assert error.message == "pgdyno-driver failed: it did not end within 1\N{NO-BREAK SPACE}s"


def test_a_host_issues_one_load_at_a_time(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    waits, does_not = (b"ALONE_WAIT_S, ALONE_POLL_S = %s" % after for after in (b"10.0", b"0.00"))
    assert waits in sent.first
    impatient = replace(sent, first=sent.first.replace(waits, does_not))
    with closing(driver(tmp_path, sent)) as first:
        first.start("{}")
        assert failure(tmp_path, impatient).detail == (
            "another pgdyno issues load from this host, or a disconnected run, which ends by itself: "
            "twice its load's time and 15\N{NO-BREAK SPACE}minutes after its start"
        )
        first.stop()
    with closing(driver(tmp_path, impatient)) as second:
        second.start("{}")
        second.stop()


def test_no_socket_of_another_program_keeps_loads_away(tmp_path: Path) -> None:
    """Any user of a host could have one of that name: there are no rights to such a socket."""
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    with socket.socket(socket.AF_UNIX) as taken, closing(driver(tmp_path, sent)) as load:
        taken.bind("\0pgdyno-load")
        with does_not_raise():
            load.start("{}")
            load.stop()


@pytest.mark.root
@pytest.mark.parametrize(
    "make", [Path.touch, Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")]
)
def test_nothing_of_another_user_in_place_of_the_lock_keeps_loads_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    lock = tmp_path / _load_program.LOCK.format(0)
    make(lock)
    os.chown(lock, 65534, 65534, follow_symlinks=False)
    monkeypatch.setattr(_load_program, "lock_directory", lambda: tmp_path)
    is_plain = lock.is_file() and not lock.is_symlink()
    with lock.open() if is_plain else does_not_raise() as theirs:
        if theirs is not None:
            fcntl.flock(theirs, fcntl.LOCK_EX)
        with _load_program.alone():
            assert os.lstat(lock).st_uid == 65534
    assert os.lstat(lock).st_uid == 65534


def test_the_lock_is_gone_afterwards_and_held_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_load_program, "lock_directory", lambda: tmp_path)
    monkeypatch.setattr(_load_program, "ALONE_WAIT_S", 0.0)
    for _ in range(2):
        with _load_program.alone():
            (lock,) = tmp_path.iterdir()
            assert stat.S_IMODE(lock.stat().st_mode) == 0o600
            with pytest.raises(SystemExit, match="another pgdyno issues load"), _load_program.alone():
                pass
        assert list(tmp_path.iterdir()) == []


def test_who_has_waited_for_a_lock_that_is_removed_takes_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would have one lock each otherwise: of the removed file, and of the one that is made anew."""
    monkeypatch.setattr(_load_program, "lock_directory", lambda: tmp_path)
    path = tmp_path / _load_program.LOCK.format(os.geteuid())
    with _load_program.alone():
        waiting = _load_program.own_file(path)
        assert waiting is not None
        assert not _load_program.is_locked(waiting, path)
    assert not _load_program.is_locked(waiting, path)
    os.close(waiting)
