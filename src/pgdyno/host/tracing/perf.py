"""``perf``: stack samples with the event cpu-clock, the scheduler's trace, and hardware counters.

Recordings work in virtual machines, without hardware counters. A recording is enabled and disabled by
commands through a pipe (``perf record --control``, since Linux 5.9), and covers only the measured windows.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import Final

from pgdyno.base.errors import ServerError

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


_LIMIT_S = 20.0
_SOME_WORK = (sys.executable, "-I", "-S", "-c", "sum(range(1000000))")  # some 20 ms: long enough to count


@dataclass(frozen=True)
class Tried:
    """Output lines of perf on a short program's counters; ``words`` is perf's message if it failed."""

    lines: tuple[str, ...]
    words: str


def try_counters(program: str, events: Sequence[str] = (), groups: str = "") -> Tried:
    """Count events or metric groups of a short program."""
    argv = [program, "stat", "--json-output", *_selection(events, groups), "--", *_SOME_WORK]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return Tried((), f"perf stat did not end within {_LIMIT_S:.0f} s")
    lines = tuple(done.stderr.splitlines())
    message = " ".join(line.strip() for line in lines if not line.startswith("{"))
    return Tried(lines, message if done.returncode else "")


@dataclass(frozen=True)
class Counting:
    """A perf that counts while it is enabled. ``file`` has its output once it has exited."""

    file: Path
    _perf: ControlledPerf

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count for the duration of a context. Raises: ServerError if perf has exited."""
        with self._perf.on():
            yield

    def read(self) -> tuple[str, ...]:
        """End it and return its output lines. Raises: ServerError with perf's message."""
        self._perf.interrupt()
        return tuple(self.file.read_text(errors="replace").splitlines())


@contextmanager
def counting(
    program: str, events: Sequence[str], groups: str, pids: Collection[int], file: Path, wrap: Wrap
) -> Iterator[Counting]:
    """Start a disabled perf that counts in these processes. Raises: ServerError with perf's message."""
    arguments = ["stat", "--json-output", *_selection(events, groups), "--pid", ",".join(map(str, pids))]
    with controlled(program, [*arguments, "--output", str(file)], wrap) as perf:
        yield Counting(file, perf)


def _selection(events: Sequence[str], groups: str) -> list[str]:
    options = [part for event in events for part in ("--event", event)]
    return [*options, "--metrics", groups] if groups else options


_END_LIMIT_S = 30.0
_MOST_CHARACTERS = 400

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Wraps a command line so that the program is killed with pgdyno, or runs as another user."""


@dataclass
class ControlledPerf:
    """A perf process, disabled at first. ``command`` is "record" or "stat"."""

    command: str
    _process: subprocess.Popen[bytes]
    _commands: int
    _answers: int

    @contextmanager
    def on(self) -> Iterator[None]:
        """Enable it for the duration of a context. Raises: ServerError if it has exited."""
        self.send("enable")
        try:
            yield
        finally:
            self.send("disable")

    def send(self, command: str) -> None:
        """Send it a command, and wait for its answer. Raises: ServerError with perf's message."""
        try:
            os.write(self._commands, f"{command}\n".encode())
        except BrokenPipeError:
            raise self._ended() from None
        if not select([self._answers], [], [], _ANSWER_LIMIT_S)[0]:
            raise ServerError(f"perf {self.command} did not answer within {_ANSWER_LIMIT_S:.0f} s")
        if not os.read(self._answers, 64):
            raise self._ended()

    def interrupt(self) -> None:
        """Send it SIGINT, on which ``perf stat`` writes its counts, and wait until it exits.

        Raises: ServerError as ``wait`` does.
        """
        self._process.send_signal(signal.SIGINT)
        self.wait(-signal.SIGINT, 128 + signal.SIGINT)

    def wait(self, *statuses: int) -> None:
        """Wait until it exits. Raises: ServerError with perf's message unless its status is 0 or listed."""
        try:
            _, output = self._process.communicate(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise ServerError(
                f"perf {self.command} did not end",
                hint=f"find out why it hangs: perf {self.command} -a sleep 1",
            ) from None
        if self._process.returncode not in (0, *statuses):
            raise self._failed(output)

    def close(self) -> None:
        """Kill it if it is still running, and close its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        for pipe in (self._commands, self._answers):
            os.close(pipe)

    def _ended(self) -> ServerError:
        _, output = self._process.communicate(timeout=_END_LIMIT_S)
        return self._failed(output)

    def _failed(self, output: bytes) -> ServerError:
        message = " ".join(output.decode(errors="replace").split())[:_MOST_CHARACTERS]
        return ServerError(f"perf {self.command} failed", detail=message or None)


@contextmanager
def controlled(program: str, arguments: Sequence[str], wrap: Wrap) -> Iterator[ControlledPerf]:
    """Start a disabled perf. Raises: ServerError with perf's message.

    ``arguments`` begin with perf's command. ``wrap`` must kill it with pgdyno: perf would run forever.
    """
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    command, *options = arguments
    how = ("--delay", "-1", f"--control=fd:{their_commands},{their_answers}")
    process = subprocess.Popen(
        wrap([program, command, *how, *options]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(their_commands, their_answers),
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    os.close(their_commands)
    os.close(their_answers)
    started = ControlledPerf(command, process, commands, answers)
    try:
        started.send("ping")
        yield started
    finally:
        started.close()
