"""Recordings of ``perf``: samples of stacks by the CPUs' clock, and the scheduler's trace.

Both work in virtual machines, without hardware counters. A recording is switched on and off by commands
through a pipe (``perf record --control``, Linux 5.9 on), so that it covers measured windows alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Final

from pgdyno.model.errors import ServerError

_STACK_BYTES = 8192  # copied with each sample, to find callers by; the least that perf's manual suggests
_ANSWER_LIMIT_S = 10.0
_END_LIMIT_S = 30.0
_MOST_WORDS = 400
STACKS: Final = "pid,time,ip,sym"
"""The fields of a sample's text, for ``profiling/stacks.py``."""
SCHEDULING: Final = "tid,cpu,time,event,trace"
"""The fields of a scheduler's event, for ``profiling/scheduling.py``."""

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Wraps a command line so that it ends with us, or runs as another user."""


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


@dataclass
class Recording:
    """A perf that records whenever it is switched on. ``file`` is where, until it is read."""

    program: str
    file: Path
    _process: subprocess.Popen[bytes]
    _commands: int
    _answers: int
    _is_on: bool = field(default=False, init=False)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Record for the length of a context. Raises: ServerError if perf has ended."""
        self._tell("enable")
        try:
            yield
        finally:
            self._tell("disable")

    def end(self) -> None:
        """End it, so that its file is whole. Raises: ServerError in perf's words."""
        self._tell("stop")
        try:
            _, words = self._process.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(
                "perf record did not end", hint="see what holds it up: perf record -a sleep 1"
            ) from None
        if self._process.returncode != 0:
            raise _failed(words)

    def close(self) -> None:
        """Kill it if it still runs, and close its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        for pipe in (self._commands, self._answers):
            os.close(pipe)

    def wait_until_ready(self) -> None:
        """Wait until it obeys. Raises: ServerError in perf's words, if it may not record for example."""
        self._tell("ping")

    def _tell(self, command: str) -> None:
        try:
            os.write(self._commands, f"{command}\n".encode())
        except BrokenPipeError:
            raise self._ended() from None
        if not select([self._answers], [], [], _ANSWER_LIMIT_S)[0]:
            raise ServerError(f"perf record did not answer within {_ANSWER_LIMIT_S:.0f} s")
        if not os.read(self._answers, 64):
            raise self._ended()

    def _ended(self) -> ServerError:
        _, words = self._process.communicate(timeout=_END_LIMIT_S)
        return _failed(words)


@contextmanager
def recording(program: str, options: Sequence[str], file: Path, wrap: Wrap) -> Iterator[Recording]:
    """Start a perf that records nothing yet. Raises: ServerError in perf's words.

    ``wrap`` has it end with us: perf would go on for ever.
    Names of programs are looked up when the recording is read; nothing is kept in the user's cache of them.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    argv = [program, "record", "--quiet", "--clockid", "mono", "--no-buildid", "--no-buildid-cache"]
    argv += [
        "--delay",
        "-1",
        f"--control=fd:{their_commands},{their_answers}",
        "--output",
        str(file),
        *options,
    ]
    process = subprocess.Popen(
        wrap(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(their_commands, their_answers),
        start_new_session=True,
    )
    os.close(their_commands)
    os.close(their_answers)
    started = Recording(program, file, process, commands, answers)
    try:
        started.wait_until_ready()
        yield started
    finally:
        started.close()


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
        text=True,
        errors="replace",
        env={"PATH": os.defpath, "HOME": "/nonexistent", "LC_ALL": "C", "DEBUGINFOD_URLS": ""},
    ) as process:
        assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
        yield from process.stdout
    if process.returncode != 0:
        raise ServerError("perf script could not read what perf record has written")


def _failed(words: bytes) -> ServerError:
    said = " ".join(words.decode(errors="replace").split())[:_MOST_WORDS]
    return ServerError("perf record failed", detail=said or None)
