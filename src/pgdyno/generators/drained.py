"""Turns of pgdyno-driver: one process, connected to all arms, lets transactions end before the next turn.

So no transaction straddles a turn, latencies need no correction, and the server of an arm at rest has no
transaction open. Both arms are driven by the same code in the same process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.generators.process import Wrap
from pgdyno.generators.transaction_log import TransactionLog
from pgdyno.generators.turns import Servers
from pgdyno.model.errors import GeneratorFailedError
from pgdyno.model.experiment import Slice

_CONNECT_TIMEOUT_S = 60.0
_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its message is seen
_END_TIMEOUT_S = 30.0
_OUTPUT_CHARACTERS = 800

Event = Mapping[str, Any]


@dataclass
class DrainedTurns:
    """A driver process for all arms. It is started by the first warm-up."""

    argv: Sequence[str]
    job: str
    wrap: Wrap
    environment: Mapping[str, str]
    log_prefixes: Sequence[Path]
    output_file: Path
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _events: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue, init=False)
    _client_cpu_us: dict[int, float] = field(default_factory=dict, init=False)

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Give the arm one long turn; the first one starts the driver and connects all arms."""
        if self._process is None:
            self._start()
        for _ in self._take([arm], slice_s=duration_s, head_s=0.0, pids=()):
            pass

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Have the driver give turns; it reads the servers' CPU time itself, at the edges of each."""
        return self._take(order, slice_s=slice_s, head_s=head_s, pids=servers.pids)

    def client_cpu_us(self, arm: int) -> float | None:
        """Return the CPU time of the driver during the arm's turns."""
        return self._client_cpu_us.get(arm)

    def end(self) -> None:
        """Stop the driver and wait for its last word."""
        self._send({"do": "stop"})
        while self._receive(_END_TIMEOUT_S)["event"] != "end":
            pass
        process = self._running()
        if process.wait(_END_TIMEOUT_S) != 0:
            raise self._failure(f"its status is {process.returncode}")

    def log(self, arm: int) -> bytes:
        """Return the transactions of an arm."""
        return TransactionLog(self.log_prefixes[arm]).read_new()

    def close(self) -> None:
        """Kill the driver if it still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):  # what was not read yet is lost with it
                        pipe.close()

    def _start(self) -> None:
        with self.output_file.open("wb") as output:
            self._process = subprocess.Popen(
                self.wrap(self.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **self.environment},
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._read_events, args=(self._process,), daemon=True).start()
        self._write(self.job)
        self._expect("ready", self._receive(_CONNECT_TIMEOUT_S))

    def _read_events(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
        with contextlib.suppress(ValueError):  # closed while reading: close() has ended the driver
            for line in process.stdout:
                self._events.put(line)
        self._events.put(None)

    def _take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, pids: Sequence[Sequence[int]]
    ) -> Iterator[Slice]:
        self._send(
            {
                "do": "turns",
                "order": list(order),
                "slice_s": slice_s,
                "head_s": head_s,
                "pids": [list(of_arm) for of_arm in pids],
            }
        )
        while (event := self._receive(slice_s + _DRAIN_TIMEOUT_S))["event"] != "turns-ended":
            self._expect("slice", event)
            arm = int(event["arm"])
            cpu_us = event["client_cpu_ns"] / 1000
            self._client_cpu_us[arm] = self._client_cpu_us.get(arm, 0.0) + cpu_us
            yield Slice(arm, event["start_ns"], event["end_ns"], tuple(event["server_cpu_ns"]))

    def _send(self, command: Event) -> None:
        self._write(json.dumps(command))

    def _write(self, line: str) -> None:
        pipe = self._running().stdin
        assert pipe is not None  # noqa: S101 — it was opened as a pipe
        try:
            pipe.write(f"{line}\n")
            pipe.flush()
        except BrokenPipeError:
            self._receive(_END_TIMEOUT_S)  # it says why it has ended
            raise

    def _receive(self, timeout_s: float) -> Event:
        """Return the next event.

        Raises: GeneratorFailedError with the driver's own words if that is an error, or none comes in time.
        """
        deadline = time.monotonic() + timeout_s
        try:
            line = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise self._failure(f"it said nothing for {timeout_s:.0f} s") from None
        if line is None:
            raise self._failure("it ended before it was told to")
        event: Event = json.loads(line)
        if event["event"] == "error":
            raise _as_error(event)
        return event

    def _expect(self, name: str, event: Event) -> None:
        if event["event"] != name:
            raise self._failure(f'it said "{event["event"]}" instead of "{name}"')

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise GeneratorFailedError("pgdyno-driver was not started")
        return self._process

    def _failure(self, why: str) -> GeneratorFailedError:
        output = self.output_file.read_text(errors="replace").strip()[-_OUTPUT_CHARACTERS:]
        return GeneratorFailedError(f"pgdyno-driver failed: {why}", detail=output or None)


def _as_error(event: Event) -> GeneratorFailedError:
    code = f" (SQLSTATE {event['sqlstate']})" if "sqlstate" in event else ""
    return GeneratorFailedError(
        f"{event['message']}{code}", detail=event.get("detail"), hint=event.get("hint")
    )
