"""A running ``perf`` that counts or records only when it is told to.

Commands go through a pipe (``perf record`` and ``perf stat`` ``--control``, Linux 5.9 on).
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
_MOST_WORDS = 400

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Wraps a command line so that it ends with us, or runs as another user."""


@dataclass
class ControlledPerf:
    """It is off until it is told otherwise. ``command`` is "record" or "stat"."""

    command: str
    _process: subprocess.Popen[bytes]
    _commands: int
    _answers: int

    @contextmanager
    def on(self) -> Iterator[None]:
        """Have it work for the length of a context. Raises: ServerError if it has ended."""
        self.tell("enable")
        try:
            yield
        finally:
            self.tell("disable")

    def tell(self, command: str) -> None:
        """Give it a command, and wait until it has obeyed. Raises: ServerError in perf's words."""
        try:
            os.write(self._commands, f"{command}\n".encode())
        except BrokenPipeError:
            raise self._ended() from None
        if not select([self._answers], [], [], _ANSWER_LIMIT_S)[0]:
            raise ServerError(f"perf {self.command} did not answer within {_ANSWER_LIMIT_S:.0f} s")
        if not os.read(self._answers, 64):
            raise self._ended()

    def interrupt(self) -> None:
        """Send it SIGINT, at which ``perf stat`` writes its counts, and wait for its end.

        Raises: ServerError as ``wait`` does.
        """
        self._process.send_signal(signal.SIGINT)
        self.wait(-signal.SIGINT, 128 + signal.SIGINT)

    def wait(self, *statuses: int) -> None:
        """Wait for its end. Raises: ServerError in perf's words unless its status is 0 or one of these."""
        try:
            _, words = self._process.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"perf {self.command} did not end",
                hint=f"see what holds it up: perf {self.command} -a sleep 1",
            ) from None
        if self._process.returncode not in (0, *statuses):
            raise self._failed(words)

    def close(self) -> None:
        """Kill it if it still runs, and close its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        for pipe in (self._commands, self._answers):
            os.close(pipe)

    def _ended(self) -> ServerError:
        _, words = self._process.communicate(timeout=_END_LIMIT_S)
        return self._failed(words)

    def _failed(self, words: bytes) -> ServerError:
        said = " ".join(words.decode(errors="replace").split())[:_MOST_WORDS]
        return ServerError(f"perf {self.command} failed", detail=said or None)


@contextmanager
def controlled(program: str, arguments: Sequence[str], wrap: Wrap) -> Iterator[ControlledPerf]:
    """Start a perf that does nothing yet. Raises: ServerError in perf's words.

    ``arguments`` begin with perf's command. ``wrap`` has it end with us: perf would go on for ever.
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
        started.tell("ping")
        yield started
    finally:
        started.close()
