"""pgdyno as a program of its own; a worker that starts it keeps off the CPUs of the servers under test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from pgdyno.model import numbers
from pgdyno.model.errors import LockHeldError, MeasurementError

_ENDING_S = 60.0  # arbitrary: after SIGTERM pgdyno stops servers and gives back what it changed
_WORDS_CHARACTERS = 1000  # of what it says at its end


@cache
def allowed_cpus() -> frozenset[int]:
    """Return the CPUs that this process had before it was moved to some of them."""
    return frozenset(os.sched_getaffinity(os.getpid()))


def run_pgdyno(words: Sequence[str], *, limit_s: float, worker_cpus: Collection[int]) -> str:
    """Return the output of a command, which may use all CPUs.

    All threads of this process keep to ``worker_cpus`` meanwhile. The kernel ends the command if this process
    is killed.
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
        printed, said = (part.decode(errors="replace") for part in process.communicate(timeout=limit_s))
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(
            f"the trial did not end within {numbers.duration(limit_s)}",
            hint="set limit in fleet.toml to more than it takes",
        ) from error
    finally:
        _end(process)
    if process.returncode == LockHeldError.exit_code and f"({LockHeldError.code})" in said:
        raise LockHeldError("another pgdyno measures on the trial's machine")
    if process.returncode != 0:
        raise MeasurementError(
            f"the trial ended with exit code {process.returncode}",
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
        ["setpriv", "--pdeathsig=TERM", sys.executable, "-P", "-m", "pgdyno", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )


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
