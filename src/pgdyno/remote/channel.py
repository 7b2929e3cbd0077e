"""Exchange lines of bounded length with a program on another host, within a time limit."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from pgdyno.base import numbers
from pgdyno.base.errors import RemoteHostError
from pgdyno.host.child_command import child_command

_MOST_LINE_BYTES = 256 << 10  # the longest answer has 600 wake-up times, 12 kB
_MOST_WORDS_BYTES = 8 << 10  # the end of ssh's messages; that of a changed host key is 1 kB, after a banner
_READ_BYTES = 64 << 10
_ENDING_S, _POLL_S = 2.0, 0.005


class Channel:
    """A program, through its pipes. Reading fails at ``ends_s``, on the monotonic clock."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take over the pipes of a program."""
        self.ends_s = 0.0
        self._process = process
        self._input, self._output, self._errors = map(_pipe, (process.stdin, process.stdout, process.stderr))
        self._line, self._words = bytearray(), bytearray()
        self._is_over = False
        self._selector = selectors.DefaultSelector()
        for file in (self._output, self._errors):
            self._selector.register(file, selectors.EVENT_READ)

    def send(self, text: bytes) -> None:
        """Send some bytes. If the program has exited, reading its answer reports that."""
        with suppress(BrokenPipeError):
            self._input.write(text)

    def line(self) -> bytes:
        """Return the next line, without its end.

        Raises: RemoteHostError if none arrives in time, it is too long, or the program has exited.
        """
        while (end := self._line.find(b"\n")) < 0:
            if len(self._line) > _MOST_LINE_BYTES:
                raise self._error(f"its answer has a line of more than {numbers.size(_MOST_LINE_BYTES)}")
            self._read()
        line = bytes(self._line[:end])
        del self._line[: end + 1]
        return line

    def parts(self) -> Iterator[tuple[bool, bytes]]:
        """Yield (is from stderr, bytes) for all output from now on, as it arrives, without a time limit.

        After an interruption, a new call continues.
        """
        if self._line:
            yield False, bytes(self._line)
            self._line.clear()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if part := os.read(key.fd, _READ_BYTES):
                    yield key.fileobj is self._errors, part
                else:
                    self._selector.unregister(key.fileobj)

    def status(self) -> int | None:
        """Wait briefly for the program's exit, and return its status; None if it still runs.

        The process is not reaped: ``stop`` needs its ID as the process group of the programs it started.
        """
        ends_s = time.monotonic() + _ENDING_S
        with suppress(ChildProcessError):  # reaped by stop()
            while time.monotonic() < ends_s:
                ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
                if ended is not None:
                    return ended.si_status
                time.sleep(_POLL_S)
        return None

    def finish(self) -> None:
        """Close the program's input, and wait briefly for its exit."""
        self._input.close()
        self.status()

    def stop(self) -> None:
        """Kill the program's process group, with any ssh to jump hosts; a waiting ``line`` call fails."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """Close the pipes. No thread may be waiting for a line."""
        self._selector.close()
        for file in (self._input, self._output, self._errors):
            file.close()

    def _read(self) -> None:
        """Wait for some bytes of the program's output or of ssh's messages."""
        if not self._selector.get_map():
            raise self._ended()
        left_s = self.ends_s - time.monotonic()
        ready = self._selector.select(left_s) if left_s > 0 else []
        if not ready:
            raise self._ended() if self._is_over else self._error("it does not respond in time")
        for key, _ in ready:
            part = os.read(key.fd, _READ_BYTES)
            if not part:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._output:
                self._line += part
            else:
                self._words = (self._words + part)[-_MOST_WORDS_BYTES:]
        self._see_end()

    def _see_end(self) -> None:
        """Wait briefly for ssh's last messages after the end of the output."""
        waited = self._selector.get_map()
        if not waited:
            raise self._ended()
        if self._output not in waited and not self._is_over:
            self._is_over, self.ends_s = True, min(self.ends_s, time.monotonic() + _ENDING_S)

    def _ended(self) -> RemoteHostError:
        status = self.status()
        return self._error("ssh does not exit" if status is None else f"ssh exited with status {status}")

    def _error(self, message: str) -> RemoteHostError:
        words = self._words.decode(errors="replace").replace("\r\n", "\n").strip()
        return RemoteHostError(message, detail=words or None)


def _pipe(file: IO[bytes] | None) -> IO[bytes]:
    if file is None:
        raise ValueError("the program was started without a pipe")
    return file


@contextmanager
def opened_channel(argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[Channel]:
    """Start a program in a new session, without a terminal, and kill it at the end.

    Raises: RemoteHostError if the program is not installed here.
    """
    if shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise RemoteHostError(
            f'program "{argv[0]}" not found on this machine', hint="install it: openssh-client"
        )
    process = subprocess.Popen(
        child_command(os.getpid(), argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        bufsize=0,
        start_new_session=True,
    )
    channel = Channel(process)
    try:
        yield channel
    finally:
        channel.stop()
        channel.close()
