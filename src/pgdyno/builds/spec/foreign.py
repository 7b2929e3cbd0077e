"""Other machines that this host can build for: compilers, libraries, and ways to run programs.

Compilers of this host make the programs, with libraries of Debian's packages for the other architecture; the
kernel hands the programs to an emulator (binfmt_misc). So everything runs as if it were this host's: what
configure tries, trained servers, PostgreSQL's own tests. How fast it is says nothing of the other machine.

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
NO_BOLT = "its library for counting branches is for programs of this machine"
_NO_HUGE_TEXT = "an emulator runs translated code: addresses of the program's code say nothing"
_LIMIT_S = 60.0  # arbitrary: the emulator takes a tenth of a second
_PROGRAM = "#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n"


@dataclass(frozen=True)
class Foreign:
    """A machine. ``triplet`` is part of its compilers' names; ``architecture`` is Debian's name."""

    machine: str
    triplet: str
    architecture: str

    @property
    def options(self) -> tuple[str, ...]:
        """Additional options of configure.

        Of two machines it is told one only, so that it tries whether programs run, and finds that they do.
        """
        places = (f"/usr/lib/{self.triplet}/pkgconfig", "/usr/share/pkgconfig")
        return (f"--host={self.triplet}", f"PKG_CONFIG_LIBDIR={':'.join(places)}")

    def package(self, name: str) -> str:
        """Return the name of a library's package for this machine."""
        return f"{name}:{self.architecture}"

    def installing(self, packages: str) -> str:
        """Return how packages are installed of which some are for this machine."""
        first = f"dpkg --add-architecture {self.architecture} && apt-get update"
        return f"{first} && apt-get install {packages}"


_KNOWN = {"aarch64": Foreign("aarch64", "aarch64-linux-gnu", "arm64")}


def parse_machine(asked: str | None) -> Foreign | None:
    """Return the requested machine; None: this host. Raises: UsageError for an unknown one."""
    here = platform.machine()
    if asked is None or asked == here:
        return None
    if asked not in _KNOWN:
        known = ", ".join(dict.fromkeys([here, *_KNOWN]))
        raise UsageError(f'--machine "{asked}": pgdyno does not build for it', hint=f"it builds for {known}")
    return _KNOWN[asked]


def require_possible(foreign: Foreign, recipe: Recipe, target: str | None) -> None:
    """Raise UsageError for requests that are impossible for another machine."""
    for part, why in (("bolt", NO_BOLT), (HUGE_TEXT, _NO_HUGE_TEXT)):
        if part in recipe.parts:
            raise UsageError(
                f'--recipe "{recipe.name}" cannot be had for --machine {foreign.machine}',
                detail=f"without {part}: {why}",
                hint=f"leave {part} out: --recipe {WITHOUT_BOLT} has neither",
            )
    if NATIVE in (*recipe.parts, target):
        raise UsageError(
            f"{NATIVE} is this CPU, and --machine {foreign.machine} is another one",
            hint=f"leave {NATIVE} out, or name the CPU: --portable neoverse-n1",
        )


def require_runs(foreign: Foreign, cc: str, options: Sequence[str], directory: Path) -> None:
    """Compile and run a test program for a machine, as the build will be run.

    Raises: InstallationError naming the packages that are missing.
    """
    with tempfile.TemporaryDirectory(dir=directory, prefix="runs-") as place:
        program = Path(place) / "program"
        argv = [*cc.split(), *options, "-x", "c", "-", "-o", str(program)]
        made = capture(argv, limit_s=_LIMIT_S, stdin=_PROGRAM)
        if made.returncode != 0:
            raise _error(
                foreign,
                f'"{cc}" makes no programs for it: {_first_line(made.stderr)}',
                f"gcc-{foreign.triplet} {foreign.package('libc6-dev')}",
            )
        failure = _failure(program)
    if failure:
        raise _error(
            foreign,
            f"a program for it does not run here: {failure}",
            f"{EMULATOR} {foreign.package('libc6')}",
        )


def _failure(program: Path) -> str:
    """Return why a program does not run, in the words of the kernel or of the emulator; empty: it runs."""
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
        return f"it does not end within {_LIMIT_S:g} s"
    return "" if done.returncode == 0 else _first_line(done.stderr) or f"status {done.returncode}"


def _first_line(said: str) -> str:
    return (said.splitlines() or ["no reason given"])[0]


def _error(foreign: Foreign, detail: str, packages: str) -> InstallationError:
    return InstallationError(
        f"PostgreSQL cannot be built for {foreign.machine} here yet",
        detail=detail,
        hint=foreign.installing(packages),
    )
