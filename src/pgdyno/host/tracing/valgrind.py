"""Valgrind's simulator of a processor, callgrind: its options, and instructions that it lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 20.0
_VERSION = re.compile(r"valgrind-([\w.]+)")
_UNKNOWN_INSTRUCTION = re.compile(r"unhandled instruction[^\n]*|Unrecognised instruction at address[^\n]*")
_OUTPUT = "callgrind."


@dataclass(frozen=True)
class Valgrind:
    """An installed valgrind."""

    program: str
    version: str

    def simulating(self, directory: Path, caches: Sequence[str]) -> tuple[str, ...]:
        """Return the beginning of a command line that simulates the program after it, and all that it forks.

        Each process writes a file into a directory when it ends: ``output_of`` it.
        """
        return (
            *(self.program, "--tool=callgrind", "--quiet", "--sigill-diagnostics=yes", "--vgdb=no"),
            *(f"--callgrind-out-file={directory}/{_OUTPUT}%p", "--dump-instr=yes", "--dump-line=no"),
            *("--compress-strings=no", "--compress-pos=no", "--cache-sim=yes", "--branch-sim=yes"),
            *("--collect-jumps=yes", *caches),
        )


def find_valgrind() -> Valgrind | None:
    """Return the installed valgrind; None if there is none, or it does not run."""
    program = shutil.which("valgrind")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return None
    found = _VERSION.search(done.stdout)
    return Valgrind(program, found[1]) if found else None


def output_of(directory: Path, pid: int) -> Path:
    """Return the file that a process has written."""
    return directory / f"{_OUTPUT}{pid}"


def unknown_instruction(log: str) -> str | None:
    """Return valgrind's words on an instruction that it does not know, from a program's log."""
    found = _UNKNOWN_INSTRUCTION.search(log)
    return found[0].strip() if found else None
