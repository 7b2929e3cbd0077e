"""The runner as it runs on a host: sent to a python3 here, or by its functions."""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fix_servers import wait_until

from pgdyno.host.probing.run_probes import PROGRAM
from pgdyno.remote import _network_program, _runner_program
from pgdyno.remote.runner import RUNNER_MODULES
from pgdyno.remote.ssh import program_text, start_command

RUNNER = program_text(RUNNER_MODULES)


def started(lifetime_s: float) -> list[str]:
    """Return the command that a host is given, for the python3 of these tests."""
    return [sys.executable, *start_command(RUNNER, "hello", lifetime_s)[1:]]


def answers(*questions: Mapping[str, object], **environment: str) -> list[dict[str, Any]]:
    """Return what a runner answers, after its greeting."""
    done = subprocess.run(
        started(60),
        input=RUNNER + b"".join(json.dumps(one).encode() + b"\n" for one in questions),
        capture_output=True,
        timeout=250,
        check=True,
        env={**os.environ, **environment},
    )
    greeting, *lines = done.stdout.splitlines()
    assert greeting == b"hello"
    return [json.loads(line) for line in lines]


def test_it_reads_the_clock() -> None:
    before_ns = time.time_ns()
    (found,) = answers({"do": "clock"})
    assert before_ns <= found["ns"] <= time.time_ns()


def test_it_says_what_the_host_is(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'\n")
    program.chmod(0o755)
    pgdyno = tmp_path / "pgdyno"
    pgdyno.write_text("#!/bin/sh\necho 'pgdyno, version 1.2'\n")
    pgdyno.chmod(0o755)
    connection = "10.0.0.9 50000 10.0.0.1 22"
    question = {"do": "facts", "is_server": True, "postgresql": str(tmp_path), "pgdyno": str(pgdyno)}
    (found,) = answers(question, SSH_CONNECTION=connection)
    assert found["kernel"] == platform.release()
    assert found["cpus"] == sorted(os.sched_getaffinity(0))
    assert found["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found["address"] == "10.0.0.1"
    said = {"directory": str(tmp_path), "version": "postgres (PostgreSQL) 17.2", "trouble": ""}
    assert found["postgresql"] == [said]
    assert found["pgdyno"] == {"program": str(pgdyno), "version": "1.2", "trouble": ""}


def test_the_pgdyno_of_a_login_is_found_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _runner_program.pgdyno(None) is None
    program = tmp_path / "pgdyno"
    program.write_text("#!/bin/sh\necho 'Python is too old'\n")
    program.chmod(0o755)
    assert _runner_program.pgdyno(None) == {
        "program": str(program), "version": "", "trouble": "prints: Python is too old"
    }  # fmt: skip


def test_a_load_host_is_not_asked_for_programs() -> None:
    (found,) = answers({"do": "facts", "is_server": False, "postgresql": None})
    assert (found["postgresql"], found["pgdyno"]) == ([], None)


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("no program", "cannot be run: Exec format error"),
        ("#!/bin/sh\necho 'no such library'; exit 127", "fails: no such library"),
        ("#!/bin/sh\nexit 1", "fails: no output"),
        ("#!/bin/sh\nexec sleep 60", "does not respond within 0.2\N{NO-BREAK SPACE}s"),
    ],
)  # fmt: skip
def test_a_program_that_is_broken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, trouble: str
) -> None:
    monkeypatch.setattr(_runner_program, "PROGRAM_LIMIT_S", 0.2)
    program = tmp_path / "postgres"
    program.write_text(text)
    program.chmod(0o755)
    assert _runner_program.version_of(program) == ("", trouble)


def test_it_writes_a_file_and_leaves_none(tmp_path: Path) -> None:
    (found,) = answers({"do": "trial_write", "bytes": 1 << 20}, TMPDIR=str(tmp_path))
    assert (found["directory"], found["trouble"]) == (str(tmp_path), "")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    (found,) = answers({"do": "trial_write", "bytes": 1}, TMPDIR=str(tmp_path / "gone"))
    assert found["trouble"] == "No such file or directory"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one CPU nothing wakes another")
def test_it_runs_the_program_of_wake_ups() -> None:
    (found,) = answers({"do": "wake_up", "program": PROGRAM.read_text(), "cpus": []})
    cpus = sorted(os.sched_getaffinity(0))
    assert (found["waker"], found["woken"]) == (cpus[0], cpus[-1])
    assert len(found["idle_us"]) > 0


def test_one_cpu_wakes_no_other() -> None:
    (found,) = answers({"do": "wake_up", "program": "", "cpus": [min(os.sched_getaffinity(0))]})
    assert found == {"error": "there is only one CPU, so nothing wakes another CPU"}


def test_a_question_that_fails_is_answered_and_the_next_one_too() -> None:
    listen = {"do": "listen", "address": "198.51.100.7", "port": 0}
    found = answers(listen, {"do": "clock"}, SSH_CONNECTION="")
    assert found[0] == {"error": "[Errno 99] Cannot assign requested address"}
    assert found[1].keys() == {"ns"}


def test_two_runners_measure_the_way_between_them() -> None:
    port = _network_program.listen({"address": "127.0.0.1", "port": 0})["port"]
    accepted: list[dict[str, Any]] = []
    other = threading.Thread(target=lambda: accepted.append(_network_program.accept({"token": "right"})))
    other.start()
    with socket.create_connection(("127.0.0.1", port)) as stranger:  # who goes at once, with a reset
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with pytest.raises(OSError, match=r"closed|reset|[Bb]roken"):  # another one's token
        _network_program.probe({"address": "127.0.0.1", "port": port, "token": "wrong"})
    probed = _network_program.probe({"address": "127.0.0.1", "port": port, "token": "right"})
    other.join()
    assert probed["round_trip_s"] > 0
    assert probed["from_server_bytes_per_s"] > 0
    assert accepted[0]["to_server_bytes_per_s"] > 0


def test_it_ends_by_itself_and_takes_its_files_along(tmp_path: Path) -> None:
    stuck = f"import pathlib, time; pathlib.Path({str(tmp_path / 'begun')!r}).touch(); time.sleep(600)"
    with subprocess.Popen(
        started(600), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        question = {"do": "wake_up", "program": stuck, "cpus": []}
        process.stdin.write(RUNNER + json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"hello\n"
        if len(os.sched_getaffinity(0)) > 1:
            wait_until((tmp_path / "begun").exists)
        process.send_signal(signal.SIGALRM)  # as at the end of its time
        assert process.wait(120) == 1
        assert b"the runner's time is over" in process.stderr.read()


@pytest.mark.parametrize("arrived", [b"", RUNNER[:-1]])
def test_it_ends_by_itself_where_it_has_not_arrived_whole(arrived: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, arrived)  # which the pipe has room for; and the connection stays
    with subprocess.Popen(started(0.5), stdin=reading) as process:
        os.close(reading)
        assert process.wait(120) == -signal.SIGALRM
    os.close(writing)


@pytest.mark.root
def test_a_user_without_rights_is_told_why() -> None:
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    question = {"do": "facts", "is_server": False, "postgresql": None}
    done = subprocess.run(
        [*command, "/usr/bin/python3", *started(60)[1:]],
        input=RUNNER + json.dumps(question).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=250,
    )
    found = json.loads(done.stdout.splitlines()[1])
    assert found["sudo"]
    assert found["user"] == "nobody"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-programs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_program_that_says_much_is_ended(reachable: Path) -> None:
    program = reachable / "pgdyno"
    program.write_text("#!/bin/sh\nexec yes\n")
    program.chmod(0o755)
    reason = "cannot be run: it prints more than 100000 bytes"
    assert _runner_program.pgdyno(str(program)) == {"program": str(program), "version": "", "trouble": reason}
