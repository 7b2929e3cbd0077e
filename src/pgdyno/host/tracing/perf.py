"""Recordings by ``perf``: stack samples with the event cpu-clock, and the scheduler's trace.

Both work in virtual machines, without hardware counters. A recording is enabled and disabled by commands
through a pipe (``perf record --control``, since Linux 5.9), and covers only the measured windows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgdyno.base.errors import ServerError
from pgdyno.host.tracing.controlled import ControlledPerf, Wrap, controlled

_STACK_BYTES = 8192  # copied with each sample to find the callers; the least that perf's manual suggests
_ANSWER_LIMIT_S = 10.0
STACKS: Final = "pid,time,ip,sym,dso"
"""Fields of a sample's text, for ``profile/stacks.py``."""
SCHEDULING: Final = "tid,cpu,time,event,trace"
"""Fields of a scheduler event, for ``profile/scheduling.py``."""


def find_perf() -> str | None:
    """Return the path of perf; None if it is not installed, or does not run on this kernel."""
    program = shutil.which("perf")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, check=False, timeout=_ANSWER_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return None
    return program if done.returncode == 0 else None


def sampling(frequency: int, pids: Collection[int] = ()) -> list[str]:
    """Return perf's options for stack samples: of all CPUs, which requires root, or of processes.

    Sampling processes costs more: a timer is set at each context switch to one of them.
    """
    scope = ["--pid", ",".join(map(str, pids))] if pids else ["--all-cpus"]
    clock = ["--event", "cpu-clock", "--freq", str(frequency)]
    return [*clock, "--call-graph", f"dwarf,{_STACK_BYTES}", *scope]


def scheduling() -> list[str]:
    """Return perf's options for the scheduler's trace of all CPUs, which requires root."""
    return ["--event", "sched:sched_waking", "--event", "sched:sched_switch", "--all-cpus"]


def in_own_mounts(wrap: Wrap) -> Wrap:
    """Run perf in its own mount namespace, since it mounts tracefs for scheduler events and leaves it so."""
    return lambda argv: wrap(["unshare", "--mount", "--", *argv])


@dataclass
class Recording:
    """A perf that records while it is enabled, into ``file``."""

    program: str
    file: Path
    _perf: ControlledPerf

    def on(self) -> AbstractContextManager[None]:
        """Record for the duration of a context. Raises: ServerError if perf has exited."""
        return self._perf.on()

    def end(self) -> None:
        """End it, which completes its file. Raises: ServerError with perf's message."""
        self._perf.send("stop")
        self._perf.wait()


@contextmanager
def recording(program: str, options: Sequence[str], file: Path, wrap: Wrap) -> Iterator[Recording]:
    """Start a disabled perf record. Raises: ServerError with perf's message.

    ``wrap`` must kill it with pgdyno: perf would run forever.
    Symbols are looked up when the recording is read; the user's build-id cache is not used.
    """
    argv = ["record", "--quiet", "--clockid", "mono", "--no-buildid", "--no-buildid-cache"]
    with controlled(program, [*argv, "--output", str(file), *options], wrap) as perf:
        yield Recording(program, file, perf)


def read_recording(program: str, file: Path, fields: str, wrap: Wrap, kernel_names: Path) -> Iterator[str]:
    """Yield the lines of a recording as text. Raises: ServerError if perf script fails.

    ``wrap`` runs perf as another user, since it parses programs made by other users. That user cannot see the
    kernel's symbols, so they are read from ``kernel_names``, a copy of /proc/kallsyms.
    """
    argv = [program, "script", "--input", str(file), "--ns", "--no-inline", "--fields", fields]
    argv += ["--kallsyms", str(kernel_names)]
    with subprocess.Popen(
        wrap(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # warnings, one for each program without symbols
        start_new_session=True,
        text=True,
        errors="replace",
        env={"PATH": os.defpath, "HOME": "/nonexistent", "LC_ALL": "C", "DEBUGINFOD_URLS": ""},
    ) as process:
        assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
        is_read = False
        try:
            yield from process.stdout
            is_read = True
        finally:
            if not is_read:  # its output is not read to the end, and Ctrl-C does not reach it
                process.kill()
    if process.returncode != 0:
        raise ServerError("perf script could not read the output of perf record")
