"""A running ``perf`` that counts or records only while it is enabled.

It gets commands through a pipe (``--control`` of ``perf record`` and ``perf stat``, since Linux 5.9).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from select import select

from pgdyno.base.errors import ServerError

_ANSWER_LIMIT_S = 10.0
_END_LIMIT_S = 30.0
_MOST_CHARACTERS = 400

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Wraps a command line so that the program is killed with pgdyno, or runs as another user."""


@dataclass
class ControlledPerf:
    """A perf process, disabled at first. ``command`` is "record" or "stat"."""

    command: str
    _process: subprocess.Popen[bytes]
    _commands: int
    _answers: int

    @contextmanager
    def on(self) -> Iterator[None]:
        """Enable it for the duration of a context. Raises: ServerError if it has exited."""
        self.send("enable")
        try:
            yield
        finally:
            self.send("disable")

    def send(self, command: str) -> None:
        """Send it a command, and wait for its answer. Raises: ServerError with perf's message."""
        try:
            os.write(self._commands, f"{command}\n".encode())
        except BrokenPipeError:
            raise self._ended() from None
        if not select([self._answers], [], [], _ANSWER_LIMIT_S)[0]:
            raise ServerError(f"perf {self.command} did not answer within {_ANSWER_LIMIT_S:.0f} s")
        if not os.read(self._answers, 64):
            raise self._ended()

    def interrupt(self) -> None:
        """Send it SIGINT, on which ``perf stat`` writes its counts, and wait until it exits.

        Raises: ServerError as ``wait`` does.
        """
        self._process.send_signal(signal.SIGINT)
        self.wait(-signal.SIGINT, 128 + signal.SIGINT)

    def wait(self, *statuses: int) -> None:
        """Wait until it exits. Raises: ServerError with perf's message unless its status is 0 or listed."""
        try:
            _, output = self._process.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"perf {self.command} did not end",
                hint=f"find out why it hangs: perf {self.command} -a sleep 1",
            ) from None
        if self._process.returncode not in (0, *statuses):
            raise self._failed(output)

    def close(self) -> None:
        """Kill it if it is still running, and close its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        for pipe in (self._commands, self._answers):
            os.close(pipe)

    def _ended(self) -> ServerError:
        _, output = self._process.communicate(timeout=_END_LIMIT_S)
        return self._failed(output)

    def _failed(self, output: bytes) -> ServerError:
        message = " ".join(output.decode(errors="replace").split())[:_MOST_CHARACTERS]
        return ServerError(f"perf {self.command} failed", detail=message or None)


@contextmanager
def controlled(program: str, arguments: Sequence[str], wrap: Wrap) -> Iterator[ControlledPerf]:
    """Start a disabled perf. Raises: ServerError with perf's message.

    ``arguments`` begin with perf's command. ``wrap`` must kill it with pgdyno: perf would run forever.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    command, *options = arguments
    how = ("--delay", "-1", f"--control=fd:{their_commands},{their_answers}")
    process = subprocess.Popen(
        wrap([program, command, *how, *options]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(their_commands, their_answers),
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    os.close(their_commands)
    os.close(their_answers)
    started = ControlledPerf(command, process, commands, answers)
    try:
        started.send("ping")
        yield started
    finally:
        started.close()
