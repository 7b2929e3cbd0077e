"""Other machines that this host can build for: compilers, libraries, and ways to run programs.

Cross-compilers make the programs, with libraries from Debian's packages for the foreign architecture; the
kernel runs the programs with an emulator (binfmt_misc). So configure's checks, trained servers and
PostgreSQL's own tests run as if for this host. Their speed is not that of the foreign machine.

Source: Debian, "Multiarch/HOWTO", "QemuUserEmulation"; Linux, Documentation/admin-guide/binfmt-misc.rst.
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.host.processes.running import capture, clean_environment
from pgdyno.model.plans.recipe import HUGE_TEXT, NATIVE, WITHOUT_BOLT, Recipe

EMULATOR = "qemu-user-static"  # the package that registers emulators with the kernel
NO_BOLT = "its instrumentation runtime supports only programs for this machine"
_NO_HUGE_TEXT = "an emulator runs translated code, so the addresses of the program's code have no meaning"
_LIMIT_S = 60.0  # arbitrary: the emulator takes a tenth of a second
_PROGRAM = "#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n"


@dataclass(frozen=True)
class Foreign:
    """A foreign machine. ``triplet``: part of its compilers' names; ``architecture``: Debian's name."""

    machine: str
    triplet: str
    architecture: str

    @property
    def options(self) -> tuple[str, ...]:
        """Additional options of configure.

        Without --build, configure tries to run programs, and the emulator lets them run.
        """
        places = (f"/usr/lib/{self.triplet}/pkgconfig", "/usr/share/pkgconfig")
        return (f"--host={self.triplet}", f"PKG_CONFIG_LIBDIR={':'.join(places)}")

    def package(self, name: str) -> str:
        """Return the name of a library's package for this machine."""
        return f"{name}:{self.architecture}"

    def installing(self, packages: str) -> str:
        """Return the command that installs packages, some of them for this machine."""
        first = f"dpkg --add-architecture {self.architecture} && apt-get update"
        return f"{first} && apt-get install {packages}"


_KNOWN = {"aarch64": Foreign("aarch64", "aarch64-linux-gnu", "arm64")}


def parse_machine(name: str | None) -> Foreign | None:
    """Return the requested machine; None: this host. Raises: UsageError for an unsupported one."""
    here = platform.machine()
    if name is None or name == here:
        return None
    if name not in _KNOWN:
        known = ", ".join(dict.fromkeys([here, *_KNOWN]))
        raise UsageError(f'--machine "{name}" is not supported', hint=f"pgdyno builds for {known}")
    return _KNOWN[name]


def require_possible(foreign: Foreign, recipe: Recipe, target: str | None) -> None:
    """Raise UsageError for requests that are impossible for another machine."""
    for part, why in (("bolt", NO_BOLT), (HUGE_TEXT, _NO_HUGE_TEXT)):
        if part in recipe.parts:
            raise UsageError(
                f'--recipe "{recipe.name}" is not possible for --machine {foreign.machine}',
                detail=f"{part} is not possible: {why}",
                hint=f"omit {part}, or use --recipe {WITHOUT_BOLT}",
            )
    if NATIVE in (*recipe.parts, target):
        raise UsageError(
            f"{NATIVE} means this CPU, but --machine {foreign.machine} is a different architecture",
            hint=f"omit {NATIVE}, or name the CPU: --portable neoverse-n1",
        )


def require_runs(foreign: Foreign, cc: str, options: Sequence[str], directory: Path) -> None:
    """Compile and run a test program for a machine, in the same way as the build.

    Raises: InstallationError naming the missing packages.
    """
    with tempfile.TemporaryDirectory(dir=directory, prefix="runs-") as place:
        program = Path(place) / "program"
        argv = [*cc.split(), *options, "-x", "c", "-", "-o", str(program)]
        made = capture(argv, limit_s=_LIMIT_S, stdin=_PROGRAM)
        if made.returncode != 0:
            raise _error(
                foreign,
                f'"{cc}" cannot compile for it: {_first_line(made.stderr)}',
                f"gcc-{foreign.triplet} {foreign.package('libc6-dev')}",
            )
        failure = _failure(program)
    if failure:
        raise _error(
            foreign,
            f"a program for it does not run on this host: {failure}",
            f"{EMULATOR} {foreign.package('libc6')}",
        )


def _failure(program: Path) -> str:
    """Return why a program does not run, by the kernel or the emulator; empty: it runs."""
    try:
        done = subprocess.run(
            [str(program)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
            env=clean_environment(),
        )
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return f"it did not exit within {_LIMIT_S:g} s"
    return "" if done.returncode == 0 else _first_line(done.stderr) or f"status {done.returncode}"


def _first_line(output: str) -> str:
    return (output.splitlines() or ["no reason given"])[0]


def _error(foreign: Foreign, detail: str, packages: str) -> InstallationError:
    return InstallationError(
        f"PostgreSQL cannot be built for {foreign.machine} on this host yet",
        detail=detail,
        hint=foreign.installing(packages),
    )
