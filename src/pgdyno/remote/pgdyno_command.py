"""Run pgdyno as a subprocess; a worker that starts it stays off the CPUs of the servers under test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.host.child_command import child_command

_ENDING_S = 60.0  # arbitrary: after SIGTERM, pgdyno stops servers and restores what it changed
_LOOK_S = 1.0  # arbitrary
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
            return process.communicate(timeout=_LOOK_S)
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
