"""Hardware counters by ``perf stat``: finding those that this machine has, and counting in processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.host.tracing.controlled import ControlledPerf, Wrap, controlled

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
