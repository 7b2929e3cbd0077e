"""pgdyno as a program of its own; a worker that starts it keeps off the CPUs of the servers under test."""

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

_ENDING_S = 60.0  # arbitrary: after SIGTERM pgdyno stops servers and gives back what it changed
_LOOK_S = 1.0  # arbitrary
_WORDS_CHARACTERS = 1000  # of what it says at its end


@cache
def allowed_cpus() -> frozenset[int]:
    """Return the CPUs that this process had before it was moved to some of them."""
    return frozenset(os.sched_getaffinity(os.getpid()))


def run_pgdyno(
    words: Sequence[str], limit_s: float, is_wanted: Callable[[], bool], *, worker_cpus: Collection[int]
) -> str:
    """Return the output of a command, which may use all CPUs.

    All threads of this process keep to ``worker_cpus`` meanwhile. The kernel ends the command if this process
    is killed; it is interrupted as well when it is not ``is_wanted`` any more.
    Raises: MeasurementError with its last words if it fails, or takes longer than its limit; LockHeldError
    if another pgdyno measures on this machine.
    """
    everywhere = allowed_cpus()
    for thread in Path("/proc/self/task").iterdir():
        _move(int(thread.name), worker_cpus)
    _move(0, everywhere)  # this thread, whose CPUs the command inherits
    process = start_pgdyno(words)
    _move(0, worker_cpus)
    try:
        printed, said = (part.decode(errors="replace") for part in _outputs(process, limit_s, is_wanted))
    finally:
        _end(process)
    if process.returncode == LockHeldError.exit_code and f"({LockHeldError.code})" in said:
        raise LockHeldError("another pgdyno measures on the machine")
    if process.returncode != 0:
        raise MeasurementError(
            f"the command ended with exit code {process.returncode}",
            detail=said.strip()[-_WORDS_CHARACTERS:] or "it said nothing",
        )
    return printed


def start_pgdyno(
    words: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command, which the kernel interrupts if this thread ends; with variables besides our own.

    Its modules are never those of the working directory (-P), which may be anybody's.
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
    """Return both outputs at the command's end. Raises: MeasurementError if that is not waited for."""
    ends_s = time.monotonic() + limit_s
    while True:
        try:
            return process.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            if not is_wanted():
                raise MeasurementError("nobody waits for the command any more") from None
            if time.monotonic() > ends_s:
                raise MeasurementError(
                    f"the command did not end within {numbers.duration(limit_s)}",
                    hint="set limit in fleet.toml to more than it takes",
                ) from None


def _move(thread: int, cpus: Collection[int]) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except ProcessLookupError:  # it has ended meanwhile
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
