"""BOLT: rearranges a finished program by the branches that it takes under load.

The branches are counted by a program that BOLT makes of the finished one, so that no hardware counters are
needed. Its counters are shared by all processes that it forks, and written by a process of their own, which
ends after the last of the others, but keeps whatever they have open as their output: such a program must not
be run where somebody waits for the end of its output.

Source: LLVM, "BOLT" (README, OptimizingClang.md) and the runtime's instr.cpp.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.host.processes.running import capture

LINKING = "-Wl,--emit-relocs"  # with which a program has to be linked: BOLT moves what they point to
PACKAGE = "bolt-19"
LEAST_FUNCTIONS = 800  # arbitrary: a server under load reaches about 4000
_PROGRAM = re.compile(r"^llvm-bolt(?:-(\d+))?$")
_LIBRARY = "lib/libbolt_rt_instr.a"  # of programs that count; Debian has it in a package of its own
_PROBE_LIMIT_S = 20.0
_WRITTEN_EVERY = "--instrumentation-sleep-time=10"  # seconds; else every process writes for itself
_NEVER_CLEARED = "--instrumentation-no-counters-clear"
_COMPUTED_JUMPS = "--skip-funcs=ExecInterpExpr.*"  # that BOLT loses in position-independent programs
_KEEPS_COMPUTED_JUMPS = (21, 1)  # from this version on
_REARRANGED = (
    "--reorder-blocks=ext-tsp",
    "--reorder-functions=cdsort",
    "--split-functions",
    "--split-all-cold",
    "--split-eh",
    "--dyno-stats",
)
_TAKEN = re.compile(r"^ *(\d+) : taken branches", re.MULTILINE)
_REACHED = re.compile(r"(\d+) out of \d+ functions in the binary .*have non-empty execution profile")


@dataclass(frozen=True)
class Bolt:
    """BOLT of one version. ``program`` is its real path: its libraries lie next to it.

    ``is_position_independent``: so is what it rearranges.
    """

    program: Path
    version: str
    is_position_independent: bool = True

    def counting(self, finished: Path, counts: Path, made: Path) -> tuple[str, ...]:
        """Return the command that makes a program which counts its branches into the file ``counts``."""
        how = ("--instrument", f"--instrumentation-file={counts}", _WRITTEN_EVERY, _NEVER_CLEARED)
        return (str(self.program), str(finished), *how, *self._left_alone, "-o", str(made))

    def rearranging(self, finished: Path, counts: Path, made: Path) -> tuple[str, ...]:
        """Return the command that rearranges a program by its counts."""
        return (
            str(self.program),
            str(finished),
            f"--data={counts}",
            *_REARRANGED,
            *self._left_alone,
            "-o",
            str(made),
        )

    @property
    def _left_alone(self) -> tuple[str, ...]:
        """Functions that it cannot move."""
        version = tuple(map(int, re.findall(r"\d+", self.version)[:2]))
        is_able = version >= _KEEPS_COMPUTED_JUMPS or not self.is_position_independent
        return () if is_able else (_COMPUTED_JUMPS,)


def find_bolt() -> Bolt | None:
    """Return the newest BOLT that is installed with all that it takes."""
    for program in _installed():
        done = capture([str(program), "--version"], limit_s=_PROBE_LIMIT_S)
        if found := re.search(r"LLVM version (\S+)", done.stdout):
            return Bolt(program, found[1])
    return None


def reached(said: str) -> int:
    """Return the number of functions reached by training, from BOLT's output; 0 if unknown."""
    found = _REACHED.search(said)
    return int(found[1]) if found else 0


def require_reached(said: str) -> None:
    """Raise InstallationError if training has reached too little: all else is put out of the way."""
    if reached(said) < LEAST_FUNCTIONS:
        raise InstallationError(
            f"training has reached {reached(said)} functions by BOLT's counts, too few to go by",
            detail=f"at least {LEAST_FUNCTIONS} are expected of a server under load",
            hint="name more workloads with --train, or leave bolt out of the recipe",
        )


def taken_branches(said: str) -> tuple[int, int]:
    """Return how many branches were taken in training, and how many would be after rearranging.

    Raises: InstallationError if BOLT does not say.
    """
    found = _TAKEN.findall(said)
    if len(found) != 2:
        raise InstallationError("BOLT does not say how many branches are taken", detail=said[-500:])
    return int(found[0]), int(found[1])


def _installed() -> Iterator[Path]:
    """Yield the programs that have their library, the unnumbered one first, then the newest."""
    found = {
        program.resolve(): int(match[1] or 1_000_000)
        for directory in map(Path, os.get_exec_path())
        if directory.is_dir()
        for program in directory.iterdir()
        if (match := _PROGRAM.match(program.name)) and (program.resolve().parents[1] / _LIBRARY).is_file()
    }
    yield from sorted(found, key=lambda program: found[program], reverse=True)
