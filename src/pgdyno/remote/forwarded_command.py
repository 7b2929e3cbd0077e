"""Run a command that pgdyno on another machine sends here through ssh; the protocol between the two.

First this side sends two lines: the greeting and its version. The other side then sends a line with the
command, followed by keepalives and possibly an interrupt. This side returns only the command's output.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO

from pgdyno.base import numbers
from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.host.child_command import child_command
from pgdyno.model.cells.cell import TypedAt

_ENDING_S = 60.0  # arbitrary: after SIGTERM, pgdyno stops servers and restores what it changed
_POLL_S = 1.0  # arbitrary
_WORDS_CHARACTERS = 1000  # of the end of its output


@cache
def allowed_cpus() -> frozenset[int]:
    """Return the CPUs that this process may use; cached before ``run_pgdyno`` restricts them."""
    return frozenset(os.sched_getaffinity(os.getpid()))


def run_pgdyno(
    words: Sequence[str], limit_s: float, is_wanted: Callable[[], bool], *, worker_cpus: Collection[int]
) -> str:
    """Run a pgdyno command and return its output. The command may use all CPUs.

    Meanwhile, all threads of this process are pinned to ``worker_cpus``. The kernel ends the command if this
    process is killed. The command is interrupted when ``is_wanted`` returns false.
    Raises: MeasurementError with the end of its output if it fails or exceeds ``limit_s``; LockHeldError if
    another pgdyno is measuring on this machine.
    """
    everywhere = allowed_cpus()
    for thread in Path("/proc/self/task").iterdir():
        _move(int(thread.name), worker_cpus)
    _move(0, everywhere)  # this thread; the command inherits its CPUs
    process = start_pgdyno(words)
    _move(0, worker_cpus)
    try:
        output, errors = (part.decode(errors="replace") for part in _outputs(process, limit_s, is_wanted))
    finally:
        _end(process)
    if process.returncode == LockHeldError.exit_code and f"({LockHeldError.code})" in errors:
        raise LockHeldError("another pgdyno is measuring on the machine")
    if process.returncode != 0:
        raise MeasurementError(
            f"the command exited with code {process.returncode}",
            detail=errors.strip()[-_WORDS_CHARACTERS:] or "it printed no error",
        )
    return output


def start_pgdyno(
    words: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a pgdyno command, with ``environment`` added to this process's environment.

    The kernel interrupts the command if this thread ends. Modules are never imported from the working
    directory (-P), which may be untrusted.
    """
    return subprocess.Popen(
        child_command(os.getpid(), [sys.executable, "-P", "-m", "pgdyno", *words], death_signal="TERM"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )


def _outputs(
    process: subprocess.Popen[bytes], limit_s: float, is_wanted: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Return (stdout, stderr) of the finished command. Raises: MeasurementError at a limit, or if unwanted.

    ``is_wanted`` is checked every second.
    """
    ends_s = time.monotonic() + limit_s
    while True:
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            if not is_wanted():
                raise MeasurementError("the command was cancelled: its result is no longer wanted") from None
            if time.monotonic() > ends_s:
                raise MeasurementError(
                    f"the command did not end within {numbers.duration(limit_s)}",
                    hint="increase limit in fleet.toml",
                ) from None


def _move(thread: int, cpus: Collection[int]) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except ProcessLookupError:  # the thread has exited
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


ALIVE, INTERRUPT = b".", b"i"
ALIVE_S = 3.0
SILENCE_S = 15.0
"""Without keepalives for this long, the connection counts as lost; ssh there gives up after 9 s."""

_PART_BYTES = 4096  # PIPE_BUF: a writable pipe accepts this much at once
_LOOK_S, _LAST_WORDS_S = 0.5, 2.0


@dataclass(frozen=True)
class CarriedCommand:
    """A command's words, the machine where it was typed, and hosts.toml if it uses load hosts."""

    words: tuple[str, ...]
    typed_at: TypedAt
    hosts_file_name: str = ""
    hosts_file: str = ""

    def line(self) -> bytes:
        """Return the command as a line of JSON, as sent."""
        return json.dumps(asdict(self)).encode() + b"\n"


def run_carried(stream: int, output: int, errors: int) -> int:
    """Run the command received on ``stream``, and return its exit code; 0 if none is received.

    All three arguments are file descriptors. The command is interrupted when the other side requests it, is
    silent, or disconnects; it then undoes its changes.
    """
    with open(stream, "rb", buffering=0, closefd=False) as file:  # must not read beyond the first line
        line = file.readline()
    if not line:
        return 0
    received = json.loads(line)
    carried = CarriedCommand(**{**received, "typed_at": TypedAt(**received["typed_at"])})
    with tempfile.TemporaryDirectory(prefix="pgdyno-") as directory:
        words = list(carried.words)
        if carried.hosts_file:
            path = Path(directory, Path(carried.hosts_file_name).name)
            path.write_text(carried.hosts_file)
            words[1:1] = ["--cell", str(path)]
        process = start_pgdyno(words, carried.typed_at.variables())
        return _attended(process, stream, output, errors)


def _attended(process: subprocess.Popen[bytes], stream: int, output: int, errors: int) -> int:
    gone = threading.Event()
    pumps = [
        _started(_relay, source, target, gone)
        for source, target in ((process.stdout, output), (process.stderr, errors))
    ]
    _started(_watch, stream, process, gone)
    try:
        status = process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            process.wait()
    for pump in pumps:
        pump.join(_LAST_WORDS_S)  # processes that it left running may keep its output open
    return status if status >= 0 else 128 - status


def _started(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _watch(stream: int, process: subprocess.Popen[bytes], gone: threading.Event) -> None:
    """Interrupt a command once: when the other side requests it, or is gone."""
    is_interrupted = False
    while select.select([stream], [], [], SILENCE_S)[0] and (received := os.read(stream, _PART_BYTES)):
        if INTERRUPT in received and not is_interrupted:
            is_interrupted = True
            process.terminate()
    gone.set()
    if not is_interrupted:
        process.terminate()


def _relay(source: IO[bytes], target: int, gone: threading.Event) -> None:
    """Relay a command's output; discard it once the other side is gone, so that the command never blocks."""
    while part := os.read(source.fileno(), _PART_BYTES):
        while part and not gone.is_set():
            if select.select([], [target], [], _LOOK_S)[1]:
                try:
                    part = part[os.write(target, part) :]
                except BrokenPipeError:
                    gone.set()
