"""Build one PostgreSQL from a source tree and install it into a staging directory.

``run_as`` decides the user: for root, the servers' account, which owns tree and destination.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.make import Making, RunAs, Watch
from pgdyno.builds.spec.configure_options import ConfigureOptions
from pgdyno.host.processes.running import capture

_PROBE_LIMIT_S = 20.0
_CONFIGURE_SHARE = 0.08  # measured share of a whole build's duration


@dataclass(frozen=True)
class Built:
    """A finished build; ``staged`` has the future contents of ``prefix``."""

    staged: Path
    server_version: str
    cflags: str
    build_s: float


@dataclass(frozen=True)
class SourceBuild:
    """One build: an unpacked ``tree``, its configure options and its final ``prefix``."""

    major: int
    tree: Path
    configure: ConfigureOptions
    prefix: Path
    log: Path
    run_as: RunAs = list

    def run(self, destination: Path, watch: Watch) -> Built:
        """Configure, compile and install with ``destination`` as DESTDIR.

        Raises: InstallationError with the last lines of the failed program's output and the log's path.
        """
        started_s = time.monotonic()
        self.log.unlink(missing_ok=True)
        making = Making(self.tree, self.log, f"PostgreSQL {self.major}", self.run_as)
        directories = self.configure.directories
        making.configure(
            self.configure.arguments_for(self.major, self.prefix),
            lambda share: watch(_CONFIGURE_SHARE * share),
        )
        making.build(directories, {}, lambda share: watch(_CONFIGURE_SHARE + (1 - _CONFIGURE_SHARE) * share))
        making.install(directories, destination, {})
        staged = destination / self.prefix.relative_to("/")
        return Built(
            staged,
            ask(staged / "bin/pg_config", "--version", self.run_as).removeprefix("PostgreSQL "),
            self._checked_flags(staged),
            time.monotonic() - started_s,
        )

    def _checked_flags(self, staged: Path) -> str:
        """Return the flags reported by the build. Raises: InstallationError for a missing requested flag."""
        found = ask(staged / "bin/pg_config", "--cflags", self.run_as)
        lost = [flag for flag in self.configure.cflags.split() if flag not in found.split()]
        if lost:
            raise InstallationError(
                f"PostgreSQL {self.major} was not built with {' '.join(lost)}",
                detail=f"pg_config reports: {found}",
                hint=f"the whole log is in {self.log}",
            )
        return found


def ask(program: Path, option: str, run_as: RunAs = list) -> str:
    """Return the output of a built program. Raises: InstallationError if it does not run."""
    done = capture(run_as([str(program), option]), limit_s=_PROBE_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(f"the built {program.name} does not run", detail=done.stderr.strip() or None)
    return done.stdout.strip()


def text_bytes(program: Path, run_as: RunAs = list) -> int:
    """Return the size of a program's machine code. Raises: InstallationError if binutils cannot read it.

    The sum includes BOLT's separate section of cold code. It excludes the original code, which BOLT keeps in
    a renamed section.
    """
    done = capture(run_as(["size", "--format=sysv", str(program)]), limit_s=_PROBE_LIMIT_S)
    found = re.findall(r"^\.text(?:\.\w+)?\s+(\d+)", done.stdout, re.MULTILINE)
    if not found:
        raise InstallationError(
            f"the size of {program} could not be read", detail=done.stderr.strip() or None
        )
    return sum(map(int, found))
