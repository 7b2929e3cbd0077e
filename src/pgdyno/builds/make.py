"""Run configure and make in one source tree, with one log, in stages that run once.

Progress is read from the log, as the share of files that make has compiled. A stage is complete when its name
is in the record, which is written after the stage. An interrupted stage runs again from its beginning, so
each stage must first clean up the leftovers of an earlier attempt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pgdyno.base.errors import InstallationError
from pgdyno.host.processes.running import output_of, run_logged

_LIMIT_S = 7200.0  # arbitrary, per program; a whole build takes 6 minutes on two idle cores
_LOG_LINES = 12
_CHECK_LINE = b"\nchecking "  # of configure's output
_OBJECT_LINE = b" -c -o "  # in each compiler command of make's output
_TEST_LINE = b" ms\n"  # a line of test output ends with the test's duration
_EXPECTED_CHECKS = 343  # measured: 17.11 and 18.6
_EXPECTED_OBJECTS = 1157  # measured: 17.11; 18.6 has 1186
_VALUE_TARGET = "pgdyno-value"  # a target that no Makefile has
RunAs = Callable[[Sequence[str]], list[str]]
"""Wraps a command so that it runs as some user."""
Watch = Callable[[float], None]
"""Is called from time to time with the completed share of a stage, 0 to 1."""


@dataclass(frozen=True)
class Stage:
    """One stage; ``expected_s`` is its duration on the machine where it was measured."""

    name: str
    expected_s: float
    run: Callable[[Watch], None]


@dataclass(frozen=True)
class Stages:
    """Stages in order, and the file that records the completed ones."""

    stages: Sequence[Stage]
    record: Path

    @property
    def expected_s(self) -> float:
        """The expected duration of all stages."""
        return sum(stage.expected_s for stage in self.stages)

    def seconds(self) -> dict[str, float]:
        """Return the completed stages and their durations."""
        try:
            lines = self.record.read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {name: float(seconds) for name, _, seconds in (line.partition("\t") for line in lines)}

    def share_done(self) -> float:
        """Return the completed share of all work."""
        done = self.seconds()
        return sum(stage.expected_s for stage in self.stages if stage.name in done) / self.expected_s

    def run(self, begin: Callable[[Stage], None], watch: Watch) -> None:
        """Run the remaining stages.

        ``begin`` is called before each, ``watch`` with the completed share of all work.
        """
        done = self.seconds()
        passed_s = 0.0
        for stage in self.stages:
            if stage.name not in done:
                begin(stage)
                began_s = time.monotonic()
                stage.run(share_of_all(watch, passed_s, stage.expected_s, self.expected_s))
                self._note(stage.name, time.monotonic() - began_s)
            passed_s += stage.expected_s
            watch(passed_s / self.expected_s)

    def _note(self, name: str, seconds: float) -> None:
        with self.record.open("a") as file:
            file.write(f"{name}\t{seconds:.1f}\n")
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True)
class Making:
    """One source tree to build in. ``title`` names it in errors: PostgreSQL 18."""

    tree: Path
    log: Path
    title: str
    run_as: RunAs = list

    def configure(self, arguments: Sequence[str], watch: Watch) -> None:
        """Configure the tree. Raises: InstallationError with the last lines of its output."""
        self._run(["./configure", *arguments], _CHECK_LINE, _EXPECTED_CHECKS, watch)

    def build(self, directories: Sequence[str], variables: Mapping[str, str], watch: Watch) -> None:
        """Compile directories. Only the first, the longest, reports progress. Raises: InstallationError."""
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        for index, directory in enumerate(directories):
            watch_this = watch if index == 0 else _unwatched
            self._make([jobs, "-C", directory, "all"], variables, watch_this)

    def install(self, directories: Sequence[str], destination: Path, variables: Mapping[str, str]) -> None:
        """Install with ``destination`` as DESTDIR. Raises: InstallationError."""
        for directory in directories:
            self._make(["-C", directory, f"DESTDIR={destination}", "install"], variables, _unwatched)

    def install_in_place(self, variables: Mapping[str, str]) -> None:
        """Install into the Makefile's own directories. Raises: InstallationError."""
        self._make(["install"], variables, _unwatched)

    def clean(self, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Remove compiled files but keep the configuration. Raises: InstallationError."""
        self._make(["clean"], variables, _unwatched)

    def value(self, directory: str, expression: str, variables: Mapping[str, str]) -> str:
        """Return the value of an expression in a directory's Makefile. Raises: InstallationError."""
        rule = f"--eval={_VALUE_TARGET}: ; @echo {expression}"
        path = str(self.tree / directory)
        argv = ["make", "--silent", "--no-print-directory", "-C", path, rule, _VALUE_TARGET]
        return output_of([*argv, *_assigned(variables)], self.run_as).strip()

    def test(
        self, directory: str, target: str, variables: Mapping[str, str], expected: int, watch: Watch
    ) -> tuple[int, str]:
        """Run a directory's tests, about ``expected`` of them; return make's exit status and output.

        Raises: InstallationError if they do not end in time.
        """
        argv = ["make", "-C", directory, target, *_assigned(variables)]
        return self._follow(argv, _TEST_LINE, expected, watch)

    def _make(self, arguments: Sequence[str], variables: Mapping[str, str], watch: Watch) -> None:
        self._run(["make", *arguments, *_assigned(variables)], _OBJECT_LINE, _EXPECTED_OBJECTS, watch)

    def _run(self, argv: Sequence[str], line: bytes, expected: int, watch: Watch) -> None:
        status, output = self._follow(argv, line, expected, watch)
        if status != 0:
            raise self._error(f'"{argv[0]}" failed with status {status}', output)

    def _follow(self, argv: Sequence[str], line: bytes, expected: int, watch: Watch) -> tuple[int, str]:
        """Run a program; return its exit status and output.

        Progress: the number of lines with ``line`` over the ``expected`` number.
        """
        start = self.log.stat().st_size if self.log.exists() else 0

        def read_output() -> bytes:
            with self.log.open("rb") as log:
                log.seek(start)
                return log.read()

        def report() -> None:
            watch(min(1.0, read_output().count(line) / expected))

        status = run_logged(self.run_as(argv), cwd=self.tree, log=self.log, limit_s=_LIMIT_S, watch=report)
        text = read_output().decode(errors="replace")
        if status is None:
            raise self._error(f'"{argv[0]}" did not end within {_LIMIT_S:g} s', text)
        return status, text

    def _error(self, what: str, output: str) -> InstallationError:
        return InstallationError(
            f"building {self.title}: {what}",
            detail="\n         ".join(
                ["the last lines of its output are:", *output.splitlines()[-_LOG_LINES:]]
            ),
            hint=f"the whole log is in {self.log}",
        )


def _assigned(variables: Mapping[str, str]) -> list[str]:
    """Return variables as arguments of make."""
    return [f"{name}={value}" for name, value in variables.items()]


def _unwatched(_: float) -> None:
    """Ignore progress."""


def share_of_all(watch: Watch, passed_s: float, expected_s: float, total_s: float) -> Watch:
    """Return a watch for one part that calls ``watch`` with the share of all work."""
    return lambda share: watch((passed_s + share * expected_s) / total_s)
