"""A driver on its way to a load host: what the host has that it does not run there."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_load_host import (
    OBEDIENT,
    SAYS_ITS_VERSION,
    alone_on_this_machine,
    driver,
    driver_in,
    failure,
    failure_of,
    sending,
    there,
)

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.transaction_log import TransactionLog


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Run one of these tests at a time on a machine: its load host takes one load."""
    with alone_on_this_machine():
        yield


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


@pytest.mark.root
def test_a_disk_that_is_full_there_is_told(tmp_path: Path) -> None:
    large = f"{SAYS_ITS_VERSION}{OBEDIENT}# {'x' * 100_000}\n"
    sent, place = sending(tmp_path, large), str(there(tmp_path))
    full = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=8k tmpfs "$0" && exec "$@"', place]
    error = failure(tmp_path, replace(sent, argv=[*full, *sent.argv]))
    assert error.detail == f"pgdyno-driver cannot work in {place}: No space left on device"


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
    assert error.detail == "pgdyno-driver was corrupted on the way: its checksum differs"


def test_a_login_may_say_something_first(tmp_path: Path) -> None:
    sent = sending(tmp_path, SAYS_ITS_VERSION + OBEDIENT)
    chatty = ["sh", "-c", f"echo Welcome; echo '{{}}'; exec {shlex.join(sent.argv)}"]
    with closing(driver(tmp_path, replace(sent, argv=chatty))) as process:
        process.start("{}")
        process.stop()
    assert TransactionLog(tmp_path / "first").read_new() == b"serve s3cret \n"


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


def test_one_that_never_answers_ends_where_it_has_not_arrived_whole(tmp_path: Path) -> None:
    sent = sending(tmp_path, OBEDIENT, 0.5)
    reading, writing = os.pipe()
    os.write(writing, sent.first[:-1])  # which the pipe has room for; and the connection stays
    with subprocess.Popen(sent.argv, stdin=reading) as process:
        os.close(reading)
        assert process.wait(120) in {1, -signal.SIGALRM}  # by its own hand once it has begun
    os.close(writing)
