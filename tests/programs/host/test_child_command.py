"""Children that end with their parent, also if it has ended before they could ask for its death signal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import pytest

from pgdyno.host.child_command import child_command, family_command
from pgdyno.postgres.process.account import caller, current_account
from pgdyno.remote._load_program import begin_child

Wrap = Callable[[Sequence[str]], list[str]]
SAYS_SO = ["echo", "it runs"]


def wraps() -> dict[str, Wrap]:
    """Return the ways of wrapping a command, for children of the process that calls this."""
    return {
        "a child": partial(child_command, os.getpid()),
        "a family": partial(family_command, os.getpid()),
        "our own account": caller().command,
        "the servers' account": current_account().command,
    }


@pytest.mark.parametrize("way", wraps())
def test_a_program_whose_parent_has_ended_is_not_executed(way: str) -> None:
    reading, writing = os.pipe()
    if (parent := os.fork()) == 0:
        command = wraps()[way](SAYS_SO)
        os.dup2(writing, 1)
        os.setsid()  # as of a family
        leave_orphan(lambda: os.execvp(command[0], command))  # noqa: S606
    os.close(writing)
    os.waitpid(parent, 0)
    with os.fdopen(reading) as answer:
        assert answer.read() == ""  # at its end, all that could write have ended


@pytest.mark.parametrize("way", wraps())
def test_it_is_executed_while_its_parent_lives(way: str) -> None:
    done = subprocess.run(
        wraps()[way](SAYS_SO), capture_output=True, text=True, check=False, start_new_session=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "it runs\n", "")


def say_after_beginning(parent: int, writing: int) -> None:
    """Begin as a child on another host does, and go on."""
    begin_child(parent)
    os.write(writing, b"it runs\n")


def leave_orphan(action: Callable[[], object]) -> NoReturn:
    """End, and leave a child that does something as soon as the kernel has given it another parent."""
    ours = os.getpid()
    if os.fork() == 0:
        while os.getppid() == ours:
            time.sleep(0.001)
        action()
    os._exit(0)


def test_a_child_on_another_host_ends_if_its_parent_has_ended() -> None:
    reading, writing = os.pipe()
    if (parent := os.fork()) == 0:
        leave_orphan(partial(say_after_beginning, os.getpid(), writing))
    os.close(writing)
    os.waitpid(parent, 0)
    with os.fdopen(reading) as answer:
        assert answer.read() == ""


def test_a_family_ends_with_its_parent_whatever_it_has_started() -> None:
    reading, writing = os.pipe()
    if (parent := os.fork()) == 0:
        script = "sleep 1000 & sh -c 'echo begun; sleep 1000; true'; true"
        subprocess.run(
            family_command(os.getpid(), ["sh", "-c", script]),
            stdout=writing,
            check=False,
            start_new_session=True,
        )
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.readline() == "begun\n"
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        assert answer.read() == ""  # at its end, none of them has it open any more


def test_a_family_has_the_input_and_the_status_of_its_program() -> None:
    command = family_command(os.getpid(), ["sh", "-c", "cat; exit 7"])
    done = subprocess.run(
        command, input="words", capture_output=True, text=True, check=False, start_new_session=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "words", "")


def test_a_program_that_is_not_there_is_told() -> None:
    for command in (child_command(os.getpid(), ["/no/such"]), family_command(os.getpid(), ["/no/such"])):
        done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
        assert done.returncode == 127
        assert done.stderr.startswith("sh: ")
        assert "/no/such" in done.stderr
