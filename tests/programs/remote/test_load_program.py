"""A driver as it runs on a load host: sent to a python3 here. A script of the shell stands for it."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fix_servers import wait_until

from pgdyno.generators.driver_process import Distance, DriverProcess
from pgdyno.generators.transaction_log import TransactionLog
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.errors import GeneratorFailedError
from pgdyno.remote.load_driver import DriverSending, driver_sending
from pgdyno.server.process.processes import is_alive

HOST = CellHost("client1", HostRole.LOAD, "client1")
SAYS_ITS_VERSION = '#!/bin/sh\n[ "$1" = --version ] && echo pgdyno-driver 9 && exit 0\n'
OBEDIENT = """
read job; echo '{"event": "ready"}'
read stop; echo '{"event": "phase", "arms": []}'
seq 100000 >1.3; echo "$* $PGPASSWORD $OF_THE_LOGIN" >0.0
echo '{"event": "end"}'
"""


def sending(directory: Path, script: str, lifetime_s: float = 60.0) -> DriverSending:
    """Return how the script is sent to this machine, whose python3 is that of these tests."""
    program = directory / "pgdyno-driver"
    program.write_text(script)
    one = driver_sending(HOST, None, program, ["serve"], {"PGPASSWORD": "s3cret"}, lifetime_s)
    return replace(one, argv=[sys.executable, *shlex.split(one.argv[-1])[1:]])


def there(directory: Path) -> Path:
    """Return the directory of temporary files of the load host."""
    path = directory / "there"
    path.mkdir(exist_ok=True)
    return path


def driver(directory: Path, sent: DriverSending, **environment: str) -> DriverProcess:
    return driver_in(there(directory), directory, sent, **environment)


def driver_in(temporary: Path, directory: Path, sent: DriverSending, **environment: str) -> DriverProcess:
    prefixes = [directory / "first", directory / "second"]
    distance = Distance("client1", sent.first, sent.greeting, prefixes)
    place: Mapping[str, str] = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), **environment}
    return DriverProcess(sent.argv, list, place, directory / "output", distance)


def failure(directory: Path, sent: DriverSending) -> GeneratorFailedError:
    return failure_of(driver(directory, sent))


def failure_of(process: DriverProcess) -> GeneratorFailedError:
    with closing(process), pytest.raises(GeneratorFailedError) as caught:
        run_of(process)
    return caught.value


def run_of(process: DriverProcess) -> None:
    process.start("{}")
    process.stop()


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Run one of these tests at a time on a machine: its load host takes one load."""
    with socket.socket(socket.AF_UNIX) as taken:
        wait_until(partial(is_bound, taken, "\0pgdyno-test-load"))
        yield


def is_bound(taken: socket.socket, address: str) -> bool:
    with suppress(OSError):
        taken.bind(address)
        return True
    return False


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
    assert started.wait(30) == 1
    assert not own.exists()
    process.close()


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + 'read job; echo \'{"event": "ready"}\'\nexec sleep 600\n', 2)
    with closing(driver(tmp_path, sent)) as process:
        process.start("{}")
        with pytest.raises(GeneratorFailedError) as caught:
            process.receive(30)
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
        assert process._process.wait(30) == (1 if number is signal.SIGTERM else -number)
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not is_alive(pid))
    assert len(list(there(tmp_path).iterdir())) == (number is signal.SIGKILL)


def test_a_driver_that_does_not_run_there_is_told_with_the_systems_words(tmp_path: Path) -> None:
    missing = "pgdyno-driver: /lib/libc.so.6: version `GLIBC_2.34' not found"
    error = failure(
        tmp_path, sending(tmp_path, f'#!/bin/sh\necho "{missing}" >&2; exit 1\n'.replace("`", "\\`"))
    )
    assert error.detail == f"pgdyno-driver does not run on this host: {missing}"
    assert list(there(tmp_path).iterdir()) == []


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    there(tmp_path).rmdir()
    with (
        closing(driver_in(tmp_path / "there", tmp_path, sent)) as process,
        pytest.raises(GeneratorFailedError) as caught,
    ):
        process.start("{}")
    assert caught.value.detail == f"pgdyno-driver cannot work in {tmp_path}/there: No such file or directory"


def test_an_error_of_something_else_is_not_the_directorys(tmp_path: Path) -> None:
    goes = '#!/bin/sh\n[ "$1" = --version ] && echo pgdyno-driver 9 && rm "$0" && exit 0\n'
    detail = failure(tmp_path, sending(tmp_path, goes)).detail or ""
    assert "No such file or directory" in detail
    assert "cannot work in" not in detail


def test_a_driver_for_another_machine_does_not_run_there(tmp_path: Path) -> None:
    error = failure(tmp_path, sending(tmp_path, "\x7fELF of another machine"))
    assert error.detail == "pgdyno-driver does not run on this host: Exec format error"


def test_a_driver_that_is_damaged_on_the_way_is_not_run(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    damaged = sent.first[:-1] + bytes([sent.first[-1] ^ 1])
    error = failure(tmp_path, replace(sent, first=damaged))
    assert error.detail == "pgdyno-driver did not arrive as it was sent: its checksum differs"


def test_a_login_may_say_something_first(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    chatty = ["sh", "-c", f"echo Welcome; echo '{{}}'; exec {shlex.join(sent.argv)}"]
    with closing(driver(tmp_path, replace(sent, argv=chatty))) as process:
        process.start("{}")
        process.stop()
    assert TransactionLog(tmp_path / "first").read_new() == b"serve s3cret \n"


def test_what_is_no_event_is_told(tmp_path: Path) -> None:
    error = failure(
        tmp_path, sending(tmp_path, SAYS_ITS_VERSION + "read job; echo 'hello [you]'; read stop\n")
    )
    assert error.message == "pgdyno-driver on client1 failed: it said 'hello [you]\\n', which is no event"
    assert error.hint == "pgdyno cell check looks at client1 and at the network between"


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (r"""printf '{"event": "\377"}\n'""", r"""it said '{"event": "\ufffd"}\n', which is no event"""),
        (
            "head -c 100000 /dev/zero | tr '\\0' '['; echo",
            f"it said '{80 * '['}', which is no event",
        ),
        ("""echo '{"event": "error"}'""", "it reports an error without words"),
        ("yes x | tr -d '\\n'", "it said a line of more than 1\N{NO-BREAK SPACE}MB"),
        ("""yes '{"event": "slice"}'""", 'it said "slice" instead of "ready"'),
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


@pytest.mark.parametrize(
    "command",
    [
        "exec sleep 600",
        "cat >/dev/null & while :; do echo Welcome; sleep 0.05; done",
    ],  # never takes it; talks
)
def test_one_limit_holds_for_all_of_its_arrival(tmp_path: Path, command: str) -> None:
    sent = replace(sending(tmp_path, OBEDIENT), argv=["sh", "-c", command], first=bytes(1 << 20))
    process = driver(tmp_path, sent)
    assert process.distance is not None
    process.distance = replace(process.distance, arrival_limit_s=0.5)
    error = failure_of(process)
    assert error.message == (
        "pgdyno-driver on client1 failed: it did not arrive within 500\N{NO-BREAK SPACE}ms"
    )


def test_all_that_reaches_the_host_is_ended(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    jumping = f"sleep 600 & echo $! >{shlex.quote(str(tmp_path))}/pid; exec {shlex.join(sent.argv)}"
    with closing(driver(tmp_path, replace(sent, argv=["sh", "-c", jumping]))) as process:
        process.start("{}")
        pid = int((tmp_path / "pid").read_text())
        assert is_alive(pid)
    wait_until(lambda: not is_alive(pid))


def test_one_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.generators.driver_process._END_TIMEOUT_S", 1.0)
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
            "another pgdyno issues load from this host, or a run that was cut off, which ends by itself: "
            "twice its load's time and 15\N{NO-BREAK SPACE}minutes after it began"
        )
        first.stop()
    with closing(driver(tmp_path, impatient)) as second:
        second.start("{}")
        second.stop()


def test_one_that_never_answers_ends_where_it_has_not_arrived_whole(tmp_path: Path) -> None:
    sent = sending(tmp_path, OBEDIENT, 0.5)
    with subprocess.Popen(sent.argv, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(sent.first[:-1])
        process.stdin.flush()  # and the connection stays
        wait_until(lambda: process.poll() is not None)
        assert process.returncode in {1, -signal.SIGALRM}  # by its own hand once it has begun
