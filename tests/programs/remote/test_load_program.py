"""A driver as it runs on a load host: sent to a python3 here. A script of the shell stands for it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

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
seq 100000 >1.3; echo "$1 $PGPASSWORD $OF_THE_LOGIN" >0.0
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
    with closing(driver(directory, sent)) as process, pytest.raises(GeneratorFailedError) as caught:
        process.start("{}")
    return caught.value


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
    assert "s3cret" not in " ".join(sending(tmp_path, OBEDIENT).argv)


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


def test_one_that_never_answers_ends_where_it_has_not_arrived_whole(tmp_path: Path) -> None:
    sent = sending(tmp_path, OBEDIENT, 0.5)
    with subprocess.Popen(sent.argv, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(sent.first[:-1])
        process.stdin.flush()  # and the connection stays
        wait_until(lambda: process.poll() is not None)
        assert process.returncode in {1, -signal.SIGALRM}  # by its own hand once it has begun
