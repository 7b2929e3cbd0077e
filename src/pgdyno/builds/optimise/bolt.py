"""BOLT: rearranges a finished program by the branches that it takes under load.

BOLT instruments the finished program to count its branches, so no hardware counters are needed. All forked
processes share the counters. A separate process writes them; it exits after all the others, and keeps their
output open until then: never wait for end-of-file on the output of an instrumented program.

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

LINKING = "-Wl,--emit-relocs"  # required link flag: BOLT moves the targets of relocations
PACKAGE = "bolt-19"
LEAST_FUNCTIONS = 800  # arbitrary: a server under load covers about 4000
_PROGRAM = re.compile(r"^llvm-bolt(?:-(\d+))?$")
_LIBRARY = "lib/libbolt_rt_instr.a"  # of instrumented programs; a separate package in Debian
_PROBE_LIMIT_S = 20.0
_WRITTEN_EVERY = "--instrumentation-sleep-time=10"  # seconds; else each process writes its own counts
_NEVER_CLEARED = "--instrumentation-no-counters-clear"
_COMPUTED_JUMPS = "--skip-funcs=ExecInterpExpr.*"  # BOLT breaks its computed gotos in PIE programs
_KEEPS_COMPUTED_JUMPS = (21, 1)  # first version with support
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
    """BOLT of one version. ``program`` is its real path, because its libraries are relative to that.

    ``is_position_independent``: whether the program to rearrange is.
    """

    program: Path
    version: str
    is_position_independent: bool = True

    def counting(self, finished: Path, counts: Path, made: Path) -> tuple[str, ...]:
        """Return the command that makes an instrumented program, which writes branch counts to ``counts``."""
        options = ("--instrument", f"--instrumentation-file={counts}", _WRITTEN_EVERY, _NEVER_CLEARED)
        return (str(self.program), str(finished), *options, *self._skipped, "-o", str(made))

    def rearranging(self, finished: Path, counts: Path, made: Path) -> tuple[str, ...]:
        """Return the command that rearranges a program by its branch counts."""
        return (
            str(self.program),
            str(finished),
            f"--data={counts}",
            *_REARRANGED,
            *self._skipped,
            "-o",
            str(made),
        )

    @property
    def _skipped(self) -> tuple[str, ...]:
        """The option for functions that this version cannot move; empty: it can move all."""
        version = tuple(map(int, re.findall(r"\d+", self.version)[:2]))
        is_able = version >= _KEEPS_COMPUTED_JUMPS or not self.is_position_independent
        return () if is_able else (_COMPUTED_JUMPS,)


def find_bolt() -> Bolt | None:
    """Return the newest BOLT that is installed with its runtime library; None: there is none."""
    for program in _installed():
        done = capture([str(program), "--version"], limit_s=_PROBE_LIMIT_S)
        if found := re.search(r"LLVM version (\S+)", done.stdout):
            return Bolt(program, found[1])
    return None


def reached(output: str) -> int:
    """Return the number of functions in the profile, from BOLT's output; 0 if unknown."""
    found = _REACHED.search(output)
    return int(found[1]) if found else 0


def require_reached(output: str) -> None:
    """Raise InstallationError for too small a profile: BOLT moves all functions outside it out of the way."""
    if reached(output) < LEAST_FUNCTIONS:
        raise InstallationError(
            f"BOLT's profile covers only {reached(output)} functions",
            detail=f"a server under load covers at least {LEAST_FUNCTIONS}",
            hint="name more workloads with --train, or remove bolt from the recipe",
        )


def taken_branches(output: str) -> tuple[int, int]:
    """Return the number of taken branches in training, and the number expected after rearranging.

    Raises: InstallationError if BOLT does not report them.
    """
    found = _TAKEN.findall(output)
    if len(found) != 2:
        raise InstallationError("BOLT did not report the number of taken branches", detail=output[-500:])
    return int(found[0]), int(found[1])


def _installed() -> Iterator[Path]:
    """Yield the programs with a runtime library: the unnumbered one, then the others newest first."""
    found = {
        program.resolve(): int(match[1] or 1_000_000)
        for directory in map(Path, os.get_exec_path())
        if directory.is_dir()
        for program in directory.iterdir()
        if (match := _PROGRAM.match(program.name)) and (program.resolve().parents[1] / _LIBRARY).is_file()
    }
    yield from sorted(found, key=lambda program: found[program], reverse=True)
