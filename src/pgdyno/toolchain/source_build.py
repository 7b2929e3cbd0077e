"""Builds one PostgreSQL from an unpacked source tree and installs it into a staging directory.

It runs as the caller, also as root: the sources are proven to be the archive's, which root trusts with every
package it installs. What is installed belongs to the caller, and everybody can read it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.errors import InstallationError
from pgdyno.toolchain.programs import capture, run_logged
from pgdyno.toolchain.recipe import Recipe

_LIMIT_S = 7200.0  # arbitrary, for one step; a whole build takes 6 minutes on two idle cores
_PROBE_LIMIT_S = 20.0
_CHECK_LINE = b"\nchecking "  # of configure's output
_OBJECT_LINE = b" -c -o "  # in every line of make's output that compiles a file
_EXPECTED_CHECKS = 343  # measured: 17.11 and 18.6
_EXPECTED_OBJECTS = 1157  # measured: 17.11; 18.6 has 1186
_CONFIGURE_SHARE = 0.08  # measured: of the time of a whole build
_LOG_LINES = 12

Watch = Callable[[float], None]
"""Is told now and then which share of a build is done."""


@dataclass(frozen=True)
class Built:
    """A finished build; ``staged`` has what belongs into ``prefix``, which does not exist yet."""

    staged: Path
    server_version: str
    cflags: str
    build_s: float


@dataclass(frozen=True)
class SourceBuild:
    """One build: an unpacked ``tree``, how to build it, and the ``prefix`` that it is made for."""

    major: int
    tree: Path
    recipe: Recipe
    prefix: Path
    log: Path

    def run(self, destination: Path, watch: Watch) -> Built:
        """Configure, compile and install below ``destination``, which stands for the root directory.

        Raises: InstallationError with the last lines of the failed step's output and the log's path.
        """
        started_s = time.monotonic()
        self.log.unlink(missing_ok=True)
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        contrib = [f"contrib/{name}" for name in self.recipe.extensions]
        self._step(["./configure", *self.recipe.configure(self.major, self.prefix)], watch)
        for directory in (".", *contrib):
            self._step(["make", jobs, "-C", directory, "all"], watch)
        for directory in (".", *contrib):
            self._step(["make", "-C", directory, f"DESTDIR={destination}", "install"], watch)
        staged = destination / self.prefix.relative_to("/")
        return Built(
            staged,
            _ask(staged / "bin/pg_config", "--version").removeprefix("PostgreSQL "),
            self._checked_flags(staged),
            time.monotonic() - started_s,
        )

    def _step(self, argv: Sequence[str], watch: Watch) -> None:
        status = run_logged(
            argv, cwd=self.tree, log=self.log, limit_s=_LIMIT_S, watch=lambda: watch(self._share_done())
        )
        if status == 0:
            return
        what = f"did not end within {_LIMIT_S:g} s" if status is None else f"failed with status {status}"
        raise InstallationError(
            f'building PostgreSQL {self.major}: "{argv[0]}" {what}',
            detail="\n         ".join(["the last lines of its output are:", *_last_lines(self.log)]),
            hint=f"the whole log is in {self.log}",
        )

    def _share_done(self) -> float:
        output = self.log.read_bytes()
        configured = min(1.0, output.count(_CHECK_LINE) / _EXPECTED_CHECKS)
        compiled = min(1.0, output.count(_OBJECT_LINE) / _EXPECTED_OBJECTS)
        return _CONFIGURE_SHARE * configured + (1 - _CONFIGURE_SHARE) * compiled

    def _checked_flags(self, staged: Path) -> str:
        """Return what the build says it was compiled with, once it has what was asked for."""
        found = _ask(staged / "bin/pg_config", "--cflags")
        lost = [flag for flag in self.recipe.cflags.split() if flag not in found.split()]
        if lost:
            raise InstallationError(
                f"PostgreSQL {self.major} was not built with {' '.join(lost)}",
                detail=f"pg_config says: {found}",
                hint=f"the whole log is in {self.log}",
            )
        return found


def _ask(program: Path, option: str) -> str:
    done = capture([str(program), option], limit_s=_PROBE_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(f"the built {program.name} does not run", detail=done.stderr.strip() or None)
    return done.stdout.strip()


def _last_lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
