"""Runs configure and make in one source tree, with one log, as whom it is told.

Progress is read from the log: what make has compiled so far of what it will compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.errors import InstallationError
from pgdyno.toolchain.programs import run_logged
from pgdyno.toolchain.stages import Watch

_LIMIT_S = 7200.0  # arbitrary, for one program; a whole build takes 6 minutes on two idle cores
_LOG_LINES = 12
_CHECK_LINE = b"\nchecking "  # of configure's output
_OBJECT_LINE = b" -c -o "  # in every line of make's output that compiles a file
_EXPECTED_CHECKS = 343  # measured: 17.11 and 18.6
_EXPECTED_OBJECTS = 1157  # measured: 17.11; 18.6 has 1186

RunAs = Callable[[Sequence[str]], list[str]]
"""Wraps a command so that it runs as some user."""


@dataclass(frozen=True)
class Making:
    """One source tree in which things are made. ``title`` is what errors call it: PostgreSQL 18."""

    tree: Path
    log: Path
    title: str
    run_as: RunAs = list

    def configure(self, arguments: Sequence[str], watch: Watch) -> None:
        """Configure the tree. Raises: InstallationError with the last lines of what it said."""
        self._run(["./configure", *arguments], _CHECK_LINE, _EXPECTED_CHECKS, watch)

    def build(self, directories: Sequence[str], variables: Mapping[str, str], watch: Watch) -> None:
        """Compile what these directories hold, the first one last longest. Raises: InstallationError."""
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        for place, directory in enumerate(directories):
            look = watch if place == 0 else _unwatched
            self._make([jobs, "-C", directory, "all"], variables, look)

    def install(self, directories: Sequence[str], destination: Path, variables: Mapping[str, str]) -> None:
        """Install below ``destination``, which stands for the root directory. Raises: InstallationError."""
        for directory in directories:
            self._make(["-C", directory, f"DESTDIR={destination}", "install"], variables, _unwatched)

    def clean(self) -> None:
        """Remove what was compiled, and keep what was configured. Raises: InstallationError."""
        self._make(["clean"], {}, _unwatched)

    def _make(self, arguments: Sequence[str], variables: Mapping[str, str], watch: Watch) -> None:
        assigned = [f"{name}={value}" for name, value in variables.items()]
        self._run(["make", *arguments, *assigned], _OBJECT_LINE, _EXPECTED_OBJECTS, watch)

    def _run(self, argv: Sequence[str], line: bytes, expected: int, watch: Watch) -> None:
        start = self.log.stat().st_size if self.log.exists() else 0

        def look() -> None:
            with self.log.open("rb") as output:
                output.seek(start)
                watch(min(1.0, output.read().count(line) / expected))

        status = run_logged(self.run_as(argv), cwd=self.tree, log=self.log, limit_s=_LIMIT_S, watch=look)
        if status == 0:
            return
        what = f"did not end within {_LIMIT_S:g} s" if status is None else f"failed with status {status}"
        raise InstallationError(
            f'building {self.title}: "{argv[0]}" {what}',
            detail="\n         ".join(["the last lines of its output are:", *self._last_lines()]),
            hint=f"the whole log is in {self.log}",
        )

    def _last_lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]


def _unwatched(_: float) -> None:
    """Make nothing of a share."""
