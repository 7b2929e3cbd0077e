"""Valgrind's processor simulator, callgrind, and its memory tracer, lackey: options and output files."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 20.0
_VERSION = re.compile(r"valgrind-([\w.]+)")
_TRACER = "--tool=lackey"
_UNKNOWN_INSTRUCTION = re.compile(r"unhandled instruction[^\n]*|Unrecognised instruction at address[^\n]*")
_OUTPUT, _TRACE = "callgrind.", "trace."


@dataclass(frozen=True)
class Valgrind:
    """An installed valgrind."""

    program: str
    version: str

    def simulating(self, directory: Path, caches: Sequence[str]) -> tuple[str, ...]:
        """Return the beginning of a command line that simulates the following program and its children.

        Each process writes its file ``output_of`` into ``directory`` when it exits.
        """
        return (
            *(self.program, "--tool=callgrind", "--quiet", "--sigill-diagnostics=yes", "--vgdb=no"),
            *(f"--callgrind-out-file={directory}/{_OUTPUT}%p", "--dump-instr=yes", "--dump-line=no"),
            *("--compress-strings=no", "--compress-pos=no", "--cache-sim=yes", "--branch-sim=yes"),
            *("--collect-jumps=yes", *caches),
        )

    def tracing(self, directory: Path) -> tuple[str, ...]:
        """Return the beginning of a command line that traces the memory accesses of the following program.

        Each forked process writes its own file ``trace_of`` into ``directory``; before valgrind 3.16, all
        processes write to one file.
        """
        return (
            *(self.program, _TRACER, "--trace-mem=yes", "--basic-counts=no", "--quiet", "--vgdb=no"),
            f"--log-file={directory}/{_TRACE}%p",
        )

    @property
    def has_tracer(self) -> bool:
        """Whether the tracer is installed: some packages contain only the most common tools."""
        return _output([self.program, _TRACER, "--version"]) is not None


def find_valgrind() -> Valgrind | None:
    """Return the installed valgrind; None if it is not installed or does not run."""
    program = shutil.which("valgrind")
    if program is None:
        return None
    found = _VERSION.search(_output([program, "--version"]) or "")
    return Valgrind(program, found[1]) if found else None


def _output(command: Sequence[str]) -> str | None:
    """Return a command's output; None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def output_of(directory: Path, pid: int) -> Path:
    """Return the file that callgrind writes for a process."""
    return directory / f"{_OUTPUT}{pid}"


def trace_of(directory: Path, pid: int) -> Path:
    """Return the file that lackey writes for a process."""
    return directory / f"{_TRACE}{pid}"


def traces_in(directory: Path) -> Iterator[tuple[int, Path]]:
    """Yield the processes with a file written by lackey, each with its file."""
    for file in directory.glob(f"{_TRACE}*"):
        pid = file.name.removeprefix(_TRACE)
        if pid.isdecimal():
            yield int(pid), file


def unknown_instruction(log: str) -> str | None:
    """Return valgrind's message on an unsupported instruction in a program's log; None if it has none."""
    found = _UNKNOWN_INSTRUCTION.search(log)
    return found[0].strip() if found else None
