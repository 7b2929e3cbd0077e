"""A program with lines of bounded length: local programs stand for ssh."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.fix_servers import wait_until

from pgdyno.base.errors import RemoteHostError
from pgdyno.postgres.process.processes import is_alive
from pgdyno.remote.channel import Channel, opened_channel


def failure(script: str, limit_s: float = 120.0) -> RemoteHostError:
    """Return how reading a line from a program of the shell fails."""
    with opened_channel(["sh", "-c", script], os.environ) as channel:
        return unread(channel, limit_s)


def unread(channel: Channel, limit_s: float) -> RemoteHostError:
    channel.ends_s = time.monotonic() + limit_s
    with pytest.raises(RemoteHostError) as caught:
        channel.line()
    return caught.value


def test_lines_go_there_and_come_back() -> None:
    with opened_channel(["cat"], os.environ) as channel:
        channel.ends_s = time.monotonic() + 120
        channel.send(b"one\ntwo\n")
        assert [channel.line(), channel.line()] == [b"one", b"two"]
        channel.finish()


def test_an_end_is_told_with_status_and_last_words() -> None:
    error = failure("echo 'Host key verification failed.' >&2; exit 255")
    assert (error.message, error.detail) == ("ssh exited with status 255", "Host key verification failed.")


def test_output_that_ends_before_its_program_is_an_end() -> None:
    assert failure("exec >&-; exec sleep 60").message == "ssh does not exit"


def test_silence_is_given_up() -> None:
    assert failure("exec sleep 60", 0.2).message == "it does not respond in time"


def test_a_line_without_an_end_is_given_up() -> None:
    assert failure("exec cat /dev/zero").message == (
        "its answer has a line of more than 256\N{NO-BREAK SPACE}kB"
    )


def test_of_words_without_an_end_the_last_are_kept() -> None:
    script = "head -c 50000 /dev/zero | tr '\\0' x >&2; echo ready; yes spam >&2"
    with opened_channel(["sh", "-c", script], os.environ) as channel:
        channel.ends_s = time.monotonic() + 120
        assert channel.line() == b"ready"
        error = unread(channel, 0.5)
    assert error.message == "it does not respond in time"
    assert 0 < len(error.detail or "") <= 8192


def test_what_has_ended_takes_nothing_more() -> None:
    with opened_channel(["true"], os.environ) as channel:
        channel.ends_s = time.monotonic() + 120
        unread(channel, 120)
        channel.send(b"more\n")
        assert unread(channel, 120).message == "ssh exited with status 0"


def test_programs_that_it_started_end_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! >{pid_file}; echo ready; wait"
    with opened_channel(["sh", "-c", script], os.environ) as channel:
        channel.ends_s = time.monotonic() + 120
        assert channel.line() == b"ready"
    pid = int(pid_file.read_text())
    wait_until(lambda: not is_alive(pid))


def test_a_machine_without_ssh_is_told() -> None:
    with (
        pytest.raises(RemoteHostError, match='program "no-such-ssh" not found'),
        opened_channel(["no-such-ssh"], os.environ),
    ):
        pass
