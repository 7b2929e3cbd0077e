"""A running pgdyno-driver: a job, then commands in and events out as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pgdyno.base import numbers
from pgdyno.base.errors import GeneratorFailedError, LoadHostLostError
from pgdyno.load.process import Wrap, last_words, output_end
from pgdyno.load.transaction_log import MOST_BYTES, keep_sent_part
from pgdyno.model.cells.cell import await_greeting

Event = Mapping[str, Any]

_CONNECT_TIMEOUT_S = 600.0  # including preparations before clients connect, such as creating tables
_END_TIMEOUT_S = 30.0
_MOST_LINE_BYTES = 1 << 20  # the results of 10,000 clients take half of that
_LOOK_S = 0.1
_SHOWN = 80  # characters of an invalid line
_MOST_LINES = 64  # queued here; more wait in the pipe

ENDED = "it ended before it was stopped"


@dataclass(frozen=True)
class Distance:
    """The transport between pgdyno and a driver on another host.

    ``first`` is sent before the job; the remote side confirms its arrival with the line ``greeting``.
    ``log_prefixes`` are the local log prefixes by arm; the remote logs are named by the arm's number. The
    limits apply to the arrival of ``first`` (2 MB, at 17 kB/s), and to all logs.
    """

    host: str
    first: bytes = field(repr=False)
    greeting: str
    log_prefixes: Sequence[Path]
    arrival_limit_s: float = 120.0
    logs_limit_s: float = 600.0
    most_log_bytes: int = MOST_BYTES
    program: str = "pgdyno-driver"


@dataclass
class DriverProcess:
    """A driver running one job. Every wait has a time limit.

    With a ``distance``, ``argv`` connects to another host; the driver is sent there, and its logs are
    transferred when it ends.
    """

    argv: Sequence[str]
    wrap: Wrap
    environment: Mapping[str, str]
    output_file: Path
    distance: Distance | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    heard_ns: int = field(default=0, init=False)
    """The arrival time of the last received line, on the monotonic clock."""
    _events: queue.Queue[tuple[int, bytes] | None] = field(
        default_factory=lambda: queue.Queue(_MOST_LINES), init=False
    )
    _reader: threading.Thread | None = field(default=None, init=False)
    _last_line: bytes = field(default=b"", init=False)

    @property
    def is_started(self) -> bool:
        """Whether it has been started."""
        return self._process is not None

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process on this machine; empty before the start, or with a ``distance``."""
        return () if self._process is None or self.distance else (self._process.pid,)

    @property
    def is_gone(self) -> bool:
        """Whether its output, or the connection to it, ended without a final error event.

        A driver that reported an error has failed, but its host is reachable.
        """
        return self._reader is not None and not self._reader.is_alive() and not _is_error(self._last_line)

    def start(self, job: str, when_there: Callable[[], None] = lambda: None) -> None:
        """Start the driver, send its job, and wait until all clients are connected."""
        self.begin()
        self.give(job, when_there)
        self.await_ready()

    def begin(self) -> None:
        """Start the process without waiting; with a ``distance``, it is ssh."""
        with self.output_file.open("wb") as output:
            self._process = subprocess.Popen(
                self.wrap(self.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=dict(self.environment),
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read_events, args=(self._process,), daemon=True)
        self._reader.start()

    def give(self, job: str, when_there: Callable[[], None] = lambda: None) -> None:
        """Send the driver program if needed, then its job; ``when_there`` is called in between."""
        if self.distance:
            self._send_program(self.distance)
        when_there()
        self._write(job)

    def await_ready(self) -> None:
        """Wait until all clients are connected."""
        self.expect("ready", self.receive(_CONNECT_TIMEOUT_S))

    def send(self, command: Event) -> None:
        """Send a command."""
        self._write(json.dumps(command))

    def receive(self, timeout_s: float) -> Event:
        """Return the next event.

        Raises: GeneratorFailedError with the driver's message if the event is an error, or after a timeout.
        """
        try:
            event = event_of(self._line(timeout_s))
            if event["event"] != "error":
                return event
            error = error_of(event)
        except ValueError as wrong:  # a remote host may run a different program
            raise self.failure(str(wrong)) from None
        raise error

    def expect(self, name: str, event: Event) -> Event:
        """Return the event if it has this name. Raises: GeneratorFailedError."""
        if event["event"] != name:
            raise self.failure(f'it sent "{event["event"][:80]}" instead of "{name}"')
        return event

    def stop(self) -> Event:
        """Stop the driver, wait for its end, and return its last phase. Raises: GeneratorFailedError."""
        self.send({"do": "stop"})
        phase = self.expect("phase", self.receive(_END_TIMEOUT_S))
        self.expect("end", self.receive(_END_TIMEOUT_S))
        if self.distance:
            self._keep_logs(self.distance)
        try:
            status = self._running().wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise self.lost(f"it did not end within {numbers.duration(_END_TIMEOUT_S)}") from None
        if status != 0:
            raise self.failure(f"it exited with status {status}")
        return phase

    def close(self) -> None:
        """Kill the process group if it still runs: ssh may have started another ssh as a proxy."""
        if self._process is None:
            return
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        ends_s = time.monotonic() + _END_TIMEOUT_S
        while self._reader and self._reader.is_alive() and time.monotonic() < ends_s:
            with contextlib.suppress(queue.Empty):  # the reader may wait for room in the queue
                self._events.get(timeout=_LOOK_S)

    def failure(self, why: str) -> GeneratorFailedError:
        """Return an error with the driver's output."""
        output = last_words(output_end(self.output_file))
        if self.distance is None:
            return GeneratorFailedError(f"pgdyno-driver failed: {why}", detail=output or None)
        return GeneratorFailedError(
            f"{self.distance.program} on {self.distance.host} failed: {why}",
            detail=output or None,
            hint=f"pgdyno cell check checks {self.distance.host} and the network between",
        )

    def lost(self, why: str) -> GeneratorFailedError:
        """Return an error for a driver that is gone or silent; with a ``distance``, its host is lost."""
        failed = self.failure(why)
        if self.distance is None:
            return failed
        host = self.distance.host
        return LoadHostLostError(failed.message, host=host, detail=failed.detail, hint=failed.hint)

    def _send_program(self, distance: Distance) -> None:
        """Send ``distance.first``, and wait for the greeting."""
        ends_s = time.monotonic() + distance.arrival_limit_s
        late = f"it did not arrive within {numbers.duration(distance.arrival_limit_s)}"
        with contextlib.suppress(BrokenPipeError):  # its end is detected by its output
            self._pour(distance.first, ends_s, late)
        if not await_greeting(lambda: self._line(ends_s - time.monotonic(), late), distance.greeting):
            raise self.failure("the login shell printed unexpected output")

    def _keep_logs(self, distance: Distance) -> None:
        """Store all parts of its logs, within limits: the host may send endlessly."""
        ends_s, room = time.monotonic() + distance.logs_limit_s, distance.most_log_bytes
        while (left_s := ends_s - time.monotonic()) > 0:
            event = self.receive(min(_END_TIMEOUT_S, left_s))
            if event["event"] == "logs-ended":
                return
            room -= keep_sent_part(distance.host, distance.log_prefixes, self.expect("log", event))
            if room < 0:
                raise self.failure(f"its logs have more than {numbers.size(distance.most_log_bytes)}")
        raise self.lost(f"its logs did not come within {numbers.duration(distance.logs_limit_s)}")

    def _line(self, timeout_s: float, late: str | None = None) -> bytes:
        """Return the next line of its output. Raises: GeneratorFailedError if none comes in time."""
        try:
            heard = self._events.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise self.lost(late or f"it sent nothing for {timeout_s:.0f} s") from None
        if heard is None:
            raise self.lost(ENDED)
        self.heard_ns, line = heard
        if len(line) > _MOST_LINE_BYTES:
            raise self.failure(f"it sent a line of more than {numbers.size(_MOST_LINE_BYTES)}")
        return line

    def _read_events(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
        with process.stdout as output:
            for line in iter(partial(output.readline, _MOST_LINE_BYTES + 1), b""):
                self._last_line = line
                self._events.put((time.monotonic_ns(), line))
                if len(line) > _MOST_LINE_BYTES:
                    break
        self._events.put(None)

    def _write(self, line: str) -> None:
        ends_s = time.monotonic() + _CONNECT_TIMEOUT_S
        try:
            self._pour(f"{line}\n".encode(), ends_s, "it does not accept a command")
        except BrokenPipeError:
            self.receive(_END_TIMEOUT_S)  # raises the driver's last error, if it sent one
            raise self.lost(ENDED) from None

    def _pour(self, text: bytes, ends_s: float, late: str) -> None:
        """Write to its input, only when the pipe has room, so that no write blocks forever.

        Raises: BrokenPipeError; GeneratorFailedError with ``late`` after ``ends_s``.
        """
        pipe, waiting, rest = self._running().stdin, select.poll(), memoryview(text)
        assert pipe is not None  # noqa: S101 — it was opened as a pipe
        waiting.register(pipe, select.POLLOUT)
        while rest:
            if not waiting.poll(max(0.0, ends_s - time.monotonic()) * 1000):
                raise self.lost(late)
            rest = rest[os.write(pipe.fileno(), rest[: select.PIPE_BUF]) :]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise GeneratorFailedError("pgdyno-driver was not started")
        return self._process


def event_of(line: bytes) -> Event:
    """Return the event in a line. Raises: ValueError with the line's first characters."""
    try:
        event = json.loads(line)
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            return event
    except (ValueError, RecursionError):  # bad UTF-8 is a ValueError, too
        pass
    raise ValueError(f"it sent {line[:_SHOWN].decode(errors='replace')!a}, which is not an event")


def _is_error(line: bytes) -> bool:
    try:
        return bool(event_of(line)["event"] == "error")
    except ValueError:
        return False


def error_of(event: Event) -> GeneratorFailedError:
    """Return the driver's error. Raises: ValueError if it has no message, or invalid fields."""
    message, state, detail, hint = (event.get(name) for name in ("message", "sqlstate", "detail", "hint"))
    if not isinstance(message, str) or any(not isinstance(one, str | None) for one in (state, detail, hint)):
        raise ValueError("it reports an error without a message")
    return GeneratorFailedError(
        f"{message} (SQLSTATE {state})" if state else message, detail=detail, hint=hint
    )


@dataclass(frozen=True)
class DriverJob:
    """A driver with its job: its local process, and the local log prefixes by arm."""

    process: DriverProcess
    job: str
    log_prefixes: Sequence[Path]
