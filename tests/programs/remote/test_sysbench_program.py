"""sysbench as it runs on a load host, conducted by a program that is sent. A script stands for sysbench."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_load_host import HOST, alone_on_this_machine, there
from tests.fix_servers import wait_until

from pgdyno.base.errors import GeneratorFailedError, RemoteHostError
from pgdyno.load.driver_process import Distance, DriverProcess
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.postgres.process.processes import is_alive
from pgdyno.remote.load_driver import DriverSending, sysbench_sending, sysbench_version

ONE_LINE_EACH_TENTH = """#!/bin/sh
trap 'exit 0' TERM
echo $$ >$PIDS/$PGDYNO_LOG; echo "$* $PGPASSWORD" >$PIDS/options-$PGDYNO_LOG; cat $1 >$PIDS/script
while :; do echo "0 1 100 0 1790000000 0" >>$PGDYNO_LOG.0; sleep 0.01; done
"""
COMPLETES_NOTHING = "#!/bin/sh\necho $$ >$PIDS/started; mv $PIDS/started $PIDS/$PGDYNO_LOG; exec sleep 600\n"
ENDS_AT_ONCE = "#!/bin/sh\necho 'FATAL: no such table'; exit 1\n"
JOB = json.dumps(
    {
        "arms": [
            {"name": name, "log": log, "options": ["--threads=1", "run"], "environment": {"PGDYNO_LOG": log}}
            for name, log in (("b", "1"), ("a", "0"))
        ],
        "cpus": [],
    }
)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Run one of these tests at a time on a machine: its load host takes one load."""
    with alone_on_this_machine():
        yield


def sysbench(directory: Path, script: str | None) -> DriverProcess:
    """Return the program, not started yet, on a host whose sysbench is a script, or which has none."""
    programs = directory / "bin"
    programs.mkdir()
    if script is not None:
        (programs / "sysbench").write_text(script)
        (programs / "sysbench").chmod(0o755)
    given = {"PGPASSWORD": "s3cret", "PIDS": str(directory)}
    sent = here(sysbench_sending(HOST, None, "-- around\n", given, 60.0, "pgdyno-load-7"))
    distance = Distance("client1", sent.first, sent.greeting, [directory / "first", directory / "second"])
    tools = "" if script is None else ":/usr/bin:/bin"
    place = {"PATH": f"{programs}{tools}", "TMPDIR": str(there(directory))}
    return DriverProcess(sent.argv, list, place, directory / "output", distance)


def here(sent: DriverSending) -> DriverSending:
    """Return how it is sent to this machine, whose python3 is that of these tests."""
    return replace(sent, argv=[sys.executable, *shlex.split(sent.argv[-1])[1:]])


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_each_server_has_its_own_and_one_works_at_a_time(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, ONE_LINE_EACH_TENTH)) as process:
        process.start(JOB)
        pids = [int((tmp_path / log).read_text()) for log in "10"]
        wait_until(lambda: all(map(is_stopped, pids)))
        process.send({"do": "turns", "order": [1, 0], "pids": [], "slice_s": 0.1, "head_s": 0, "delay_s": 0})
        for arm in (1, 0):
            taken = process.expect("slice", process.receive(120))
            assert taken["arm"] == arm
            assert taken["end_ns"] - taken["start_ns"] == 100_000_000
            assert taken["drained_ns"] >= taken["end_ns"]
        process.expect("turns-ended", process.receive(120))
        wait_until(lambda: all(map(is_stopped, pids)))
        process.stop()
    for prefix in ("first", "second"):
        assert set(TransactionLog(tmp_path / prefix).read_new().splitlines()) == {b"0 1 100 0 1790000000 0"}
    assert not any(map(is_alive, pids))
    assert list(there(tmp_path).iterdir()) == []


def test_the_password_is_in_its_environment_and_the_script_around_its_own_beside_it(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, ONE_LINE_EACH_TENTH)) as process:
        process.start(JOB)
        process.stop()
    wrapper, *rest = (tmp_path / "options-0").read_text().split()
    assert rest == ["--threads=1", "run", "s3cret"]
    assert wrapper.startswith(f"{there(tmp_path)}/pgdyno-load-7-")  # by that it is found and taken away
    assert (tmp_path / "script").read_text() == "-- around\n"


def test_its_own_words_are_told_when_it_ends(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, ENDS_AT_ONCE)) as process:
        with pytest.raises(GeneratorFailedError) as caught:
            process.start(JOB)
        reader = process._reader
        assert reader is not None
        reader.join(120)
        assert not reader.is_alive()
        assert not process.is_gone  # it has said why: its host is not lost
    assert caught.value.message == (
        "sysbench on client1 exited with status 1 before it was stopped (server: b)"
    )
    assert caught.value.detail == "FATAL: no such table"


def test_the_signal_that_ends_it_is_told(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, ONE_LINE_EACH_TENTH)) as process:
        process.start(JOB)
        os.kill(int((tmp_path / "0").read_text()), signal.SIGKILL)
        process.send({"do": "turns", "order": [1], "pids": [], "slice_s": 0.1, "head_s": 0, "delay_s": 0})
        with pytest.raises(GeneratorFailedError) as caught:
            process.receive(120)
    assert caught.value.message == (
        "sysbench on client1 was killed by signal 9 before it was stopped (server: a)"
    )


def test_a_host_without_it_says_so(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, None)) as process, pytest.raises(GeneratorFailedError) as caught:
        process.start(JOB)
    assert caught.value.detail == (
        f"sysbench is not installed on this host: it is not on the PATH ({tmp_path}/bin)"
    )
    assert list(there(tmp_path).iterdir()) == []


def test_it_ends_with_its_starter(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, ONE_LINE_EACH_TENTH)) as process:
        process.start(JOB)
        pids = [int((tmp_path / log).read_text()) for log in "10"]
        assert process._process is not None
        process._process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, pids)))
        wait_until(lambda: process.is_gone)


def test_it_ends_with_its_starter_though_no_transaction_was_completed(tmp_path: Path) -> None:
    with closing(sysbench(tmp_path, COMPLETES_NOTHING)) as process:
        with ThreadPoolExecutor(1) as pool:
            starting = pool.submit(process.start, JOB)
            wait_until((tmp_path / "1").exists)
            assert process._process is not None
            assert process._process.stdin is not None
            process._process.stdin.close()
            with pytest.raises(GeneratorFailedError):
                starting.result()
        wait_until(lambda: not is_alive(int((tmp_path / "1").read_text())))
    assert list(there(tmp_path).iterdir()) == []


def version_said(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the version that sysbench says on a host where it is a script."""
    programs = directory / "bin"
    programs.mkdir()
    (programs / "sysbench").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "sysbench").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(
        "pgdyno.remote.load_driver.ssh_command", lambda _, __, command, **___: as_here(command)
    )
    return sysbench_version(HOST, None, 120.0, "pgdyno-load-7")


def as_here(command: Sequence[str]) -> list[str]:
    """Return how to run a command of the load host here, by the python3 of these tests."""
    return [sys.executable, *command[1:]]


def test_its_version_is_told_without_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "echo 'sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)'"
    assert version_said(tmp_path, said, monkeypatch) == "sysbench 1.0.20"


def test_one_that_does_not_run_is_not_taken_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RemoteHostError) as caught:
        version_said(tmp_path, "echo 'sysbench: libpq.so.5: cannot open'; exit 127", monkeypatch)
    assert caught.value.detail == "sysbench does not run on this host: sysbench: libpq.so.5: cannot open"


@pytest.mark.parametrize("said", ["sysbench", "sysbench of ours", "sysbench $(printf '\\033')[31m1.0"])
def test_other_words_of_a_host_are_no_version(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RemoteHostError, match="sysbench prints something other than its version there"):
        version_said(tmp_path, f'echo "{said}"', monkeypatch)
