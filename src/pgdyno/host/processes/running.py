"""Run programs that fetch and build: with a clean environment, a time limit, and no surviving children."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pgdyno.base.errors import InstallationError
from pgdyno.host.child_command import family_command

_POLL_S = 1.0
_LIMIT_S = 600.0  # arbitrary; the programs take seconds
_LAST_LINES = 12
_KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME")
"""All others are dropped: the caller's CFLAGS, LDFLAGS, COPT or MAKEFLAGS would make builds differ."""
_KEPT_OF_ROOT = ("PATH",)  # root builds under another account, which must not use root's home


def clean_environment(**added: str) -> dict[str, str]:
    """Return the environment of every program of this package: English messages, no compiler flags."""
    names = _KEPT_OF_ROOT if os.geteuid() == 0 else _KEPT_VARIABLES
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", **added}


def is_installed(program: str) -> bool:
    """Whether a program is found in PATH."""
    return shutil.which(program) is not None


def capture(
    argv: Sequence[str],
    *,
    limit_s: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a short program and return its output. Raises: InstallationError if it exceeds its limit.

    The program and its children are killed in the same cases as by ``run_logged``.
    """
    process = subprocess.Popen(
        family_command(os.getpid(), argv),
        cwd=cwd,
        env=environment or clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            output, errors = process.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise InstallationError(
                f'"{" ".join(argv[:2])}" did not end within {limit_s:g} s',
                hint="check the network connection and try again",
            ) from error
        finally:
            _end_group(process)
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def output_of(
    argv: Sequence[str],
    run_as: Callable[[Sequence[str]], list[str]] = list,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return a program's output. Raises: InstallationError with its last lines if it fails."""
    done = capture(run_as(argv), limit_s=_LIMIT_S, cwd=cwd, environment=environment)
    if done.returncode != 0:
        raise InstallationError(
            f'"{argv[0]}" failed with status {done.returncode}',
            detail="\n         ".join((done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:]),
        )
    return done.stdout


def run_logged(
    argv: Sequence[str], *, cwd: Path, log: Path, limit_s: float, watch: Callable[[], None]
) -> int | None:
    """Run a long program at the lowest priority, with its output appended to ``log``.

    ``watch`` is called every second. Returns the exit status; None if the program exceeded its limit. It and
    its children are killed when this function returns or raises an exception, and by the kernel when pgdyno
    is killed.
    """
    deadline_s = time.monotonic() + limit_s
    with log.open("ab") as output:
        process = subprocess.Popen(
            family_command(os.getpid(), ["nice", "-n", "19", *argv]),
            cwd=cwd,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o022,  # the servers' account must be able to read installed files
        )
    try:
        while time.monotonic() < deadline_s:
            try:
                return process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                watch()
        return None
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
