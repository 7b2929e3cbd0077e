"""A running pgdyno-driver: a job, then commands in and events out as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.generators.output import last_words, output_end
from pgdyno.generators.process import Wrap
from pgdyno.generators.transaction_log import keep_sent_part
from pgdyno.model.errors import GeneratorFailedError

Event = Mapping[str, Any]

_CONNECT_TIMEOUT_S = 600.0  # with what is done before clients connect, such as making tables
_END_TIMEOUT_S = 30.0
_ARRIVAL_TIMEOUT_S = 120.0  # of a driver that is sent: 2 MB, at 17 kB/s
_MOST_CHATTER = 200  # lines that a login may say before what was sent does


@dataclass(frozen=True)
class Distance:
    """The stretch between pgdyno and a driver on another host.

    ``first`` is sent before the job; ``greeting`` is the line that says that it has arrived. ``log_prefixes``
    are where the transactions of each arm are to be here: there, they are logged by the arm's number.
    """

    host: str
    first: bytes = field(repr=False)
    greeting: str
    log_prefixes: Sequence[Path]


@dataclass
class DriverProcess:
    """The driver at work on one job. Every wait has a limit.

    At a ``distance``, ``argv`` reaches another host, where it is sent, and its logs come when it ends.
    """

    argv: Sequence[str]
    wrap: Wrap
    environment: Mapping[str, str]
    output_file: Path
    distance: Distance | None = None
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _events: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue, init=False)

    @property
    def is_started(self) -> bool:
        """Whether it has been started."""
        return self._process is not None

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process on this machine; none before it is started."""
        return () if self._process is None or self.distance else (self._process.pid,)

    def start(self, job: str) -> None:
        """Start it, give it its job, and wait until all clients are connected."""
        with self.output_file.open("wb") as output:
            self._process = subprocess.Popen(
                self.wrap(self.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=dict(self.environment),
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._read_events, args=(self._process,), daemon=True).start()
        if self.distance:
            self._cover(self.distance, self._process)
        self._write(job)
        self.expect("ready", self.receive(_CONNECT_TIMEOUT_S))

    def send(self, command: Event) -> None:
        """Give it a command."""
        self._write(json.dumps(command))

    def receive(self, timeout_s: float) -> Event:
        """Return the next event.

        Raises: GeneratorFailedError with the driver's own words if that is an error, or none comes in time.
        """
        line = self._line(timeout_s)
        try:
            event: Event = json.loads(line)
            name = event["event"]
        except (ValueError, TypeError, KeyError):  # of a program on another host that is not ours
            raise self.failure(f"it said {line[:80]!a}, which is no event") from None
        if name == "error":
            raise _as_error(event)
        return event

    def expect(self, name: str, event: Event) -> Event:
        """Return the event if it is of this name. Raises: GeneratorFailedError."""
        if event["event"] != name:
            raise self.failure(f'it said "{event["event"]}" instead of "{name}"')
        return event

    def stop(self) -> Event:
        """Stop it, wait for its end, and return the results of its last phase."""
        self.send({"do": "stop"})
        phase = self.expect("phase", self.receive(_END_TIMEOUT_S))
        self.expect("end", self.receive(_END_TIMEOUT_S))
        if self.distance:
            self._keep_logs(self.distance)
        process = self._running()
        if process.wait(_END_TIMEOUT_S) != 0:
            raise self.failure(f"its status is {process.returncode}")
        return phase

    def close(self) -> None:
        """Kill it if it still runs."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what was not read yet is lost with it
                    pipe.close()

    def failure(self, why: str) -> GeneratorFailedError:
        """Return an error with the driver's output."""
        output = last_words(output_end(self.output_file))
        if self.distance is None:
            return GeneratorFailedError(f"pgdyno-driver failed: {why}", detail=output or None)
        return GeneratorFailedError(
            f"pgdyno-driver on {self.distance.host} failed: {why}",
            detail=output or None,
            hint=f"pgdyno cell check looks at {self.distance.host} and at the network between",
        )

    def _cover(self, distance: Distance, process: subprocess.Popen[str]) -> None:
        """Send everything that comes before the job, and wait until it has arrived."""
        assert process.stdin is not None  # noqa: S101 — it was opened as a pipe
        watchdog = threading.Timer(_ARRIVAL_TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            with (
                contextlib.suppress(BrokenPipeError),  # its end is seen by its output
                os.fdopen(os.dup(process.stdin.fileno()), "wb") as pipe,
            ):
                pipe.write(distance.first)
        finally:
            watchdog.cancel()
        for _ in range(_MOST_CHATTER):
            if self._line(_ARRIVAL_TIMEOUT_S).strip() == distance.greeting:
                return
        raise self.failure("a login says other things than what was sent would")

    def _keep_logs(self, distance: Distance) -> None:
        while (event := self.receive(_END_TIMEOUT_S))["event"] != "logs-ended":
            keep_sent_part(distance.host, distance.log_prefixes, self.expect("log", event))

    def _line(self, timeout_s: float) -> str:
        """Return the next line of its output. Raises: GeneratorFailedError if none comes in time."""
        try:
            line = self._events.get(timeout=timeout_s)
        except queue.Empty:
            raise self.failure(f"it said nothing for {timeout_s:.0f} s") from None
        if line is None:
            raise self.failure("it ended before it was stopped")
        return line

    def _read_events(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
        with contextlib.suppress(ValueError):  # closed while reading: close() has ended the driver
            for line in process.stdout:
                self._events.put(line)
        self._events.put(None)

    def _write(self, line: str) -> None:
        pipe = self._running().stdin
        assert pipe is not None  # noqa: S101 — it was opened as a pipe
        try:
            pipe.write(f"{line}\n")
            pipe.flush()
        except BrokenPipeError:
            self.receive(_END_TIMEOUT_S)  # raises what the driver said before it ended
            raise

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise GeneratorFailedError("pgdyno-driver was not started")
        return self._process


def _as_error(event: Event) -> GeneratorFailedError:
    code = f" (SQLSTATE {event['sqlstate']})" if "sqlstate" in event else ""
    return GeneratorFailedError(
        f"{event['message']}{code}", detail=event.get("detail"), hint=event.get("hint")
    )
