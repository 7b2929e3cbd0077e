"""Recordings of ``perf``: samples of stacks by the CPUs' clock, and the scheduler's trace.

Both work in virtual machines, without hardware counters. A recording is switched on and off by commands
through a pipe (``perf record --control``, Linux 5.9 on), so that it covers measured windows alone.
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

_STACK_BYTES = 8192  # copied with each sample, to find callers by; the least that perf's manual suggests
_ANSWER_LIMIT_S = 10.0
STACKS: Final = "pid,time,ip,sym,dso"
"""The fields of a sample's text, for ``profile/stacks.py``."""
SCHEDULING: Final = "tid,cpu,time,event,trace"
"""The fields of a scheduler's event, for ``profile/scheduling.py``."""


def find_perf() -> str | None:
    """Return the path of perf; None if it is not there, or does not run on this kernel."""
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
    """Return perf's options for samples of stacks: of all CPUs, which takes root, or of processes.

    Sampling processes sets a timer whenever one comes to run, which costs more.
    """
    scope = ["--pid", ",".join(map(str, pids))] if pids else ["--all-cpus"]
    clock = ["--event", "cpu-clock", "--freq", str(frequency)]
    return [*clock, "--call-graph", f"dwarf,{_STACK_BYTES}", *scope]


def scheduling() -> list[str]:
    """Return perf's options for the scheduler's trace of all CPUs, which takes root."""
    return ["--event", "sched:sched_waking", "--event", "sched:sched_switch", "--all-cpus"]


def in_own_mounts(wrap: Wrap) -> Wrap:
    """Have perf see mounts of its own: it mounts tracefs to find the scheduler's events, and leaves it so."""
    return lambda argv: wrap(["unshare", "--mount", "--", *argv])


@dataclass
class Recording:
    """A perf that records whenever it is switched on. ``file`` is where, until it is read."""

    program: str
    file: Path
    _perf: ControlledPerf

    def on(self) -> AbstractContextManager[None]:
        """Record for the length of a context. Raises: ServerError if perf has ended."""
        return self._perf.on()

    def end(self) -> None:
        """End it, so that its file is whole. Raises: ServerError in perf's words."""
        self._perf.tell("stop")
        self._perf.wait()


@contextmanager
def recording(program: str, options: Sequence[str], file: Path, wrap: Wrap) -> Iterator[Recording]:
    """Start a perf that records nothing yet. Raises: ServerError in perf's words.

    ``wrap`` has it end with us: perf would go on for ever.
    Names of programs are looked up when the recording is read; nothing is kept in the user's cache of them.
    """
    argv = ["record", "--quiet", "--clockid", "mono", "--no-buildid", "--no-buildid-cache"]
    with controlled(program, [*argv, "--output", str(file), *options], wrap) as perf:
        yield Recording(program, file, perf)


def read_recording(program: str, file: Path, fields: str, wrap: Wrap, kernel_names: Path) -> Iterator[str]:
    """Yield the lines of a recording as text. Raises: ServerError in perf's words.

    ``wrap`` runs it as another user: it reads programs that others have made. That user sees no names of the
    kernel's functions by itself, so they come from ``kernel_names``, a copy of /proc/kallsyms.
    """
    argv = [program, "script", "--input", str(file), "--ns", "--no-inline", "--fields", fields]
    argv += ["--kallsyms", str(kernel_names)]
    with subprocess.Popen(
        wrap(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # warnings, one for each program without names
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
            if not is_read:  # nobody reads on, and the terminal does not interrupt it
                process.kill()
    if process.returncode != 0:
        raise ServerError("perf script could not read what perf record has written")
