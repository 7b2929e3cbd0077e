"""gcc: keeps profile data next to each object file, so both programs are compiled at one path.

Source: GCC, "Program Instrumentation Options", "Options That Control Optimization", gcov's "Cross-profiling".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.builds.compilers._contract import Coverage
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import Recipe

LEAST_OBJECTS = 400  # arbitrary: of about 850 that the server's program consists of


@dataclass(frozen=True)
class Gcc:
    """gcc of one version; ``suffix`` ends its programs' names: ``-14``, or nothing.

    ``foreign``: the machine that it compiles for, by which its names begin; None: this one.
    """

    suffix: str = ""
    foreign: Foreign | None = None

    @property
    def program(self) -> str:
        """The compiler's program."""
        return self._named("gcc")

    @property
    def package(self) -> str:
        """The package that it comes in."""
        return f"gcc{self.suffix}" if self.foreign is None else f"gcc{self.suffix}-{self.foreign.triplet}"

    @property
    def cc(self) -> str:
        """The compiler as make calls it: for each machine a program of its own."""
        return self.program

    @property
    def linker(self) -> tuple[str, ...]:
        """Link with the system's linker."""
        return ()

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return nothing besides: binutils and gcov come with it."""
        names = ("ar", "ranlib", "nm") if recipe.is_linked_whole else ()
        return {self._named(f"gcc-{name}"): self.package for name in names}

    @property
    def counting_package(self) -> str:
        """It comes with the compiler."""
        return self.package

    def counting(self, directory: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Count in each process by itself: backends have one thread, and merge when they end.

        The environment names the directory.
        Counting atomically (-fprofile-update=prefer-atomic) gave gcc 12 counts that it crashed over.
        """
        return ("-fprofile-generate",)

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Put the path of every object file below ``directory``."""
        return {"GCOV_PREFIX": str(directory)}

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:
        """Put the profile data next to the objects to compile.

        What is there comes from programs that ran outside the training: build tools, the loading of data.
        """
        return (
            ("find", str(tree), "-name", "*.gcda", "-delete"),
            ("cp", "--archive", f"{directory}{tree}/.", f"{tree}/"),
        )

    def coverage(self, directory: Path) -> Coverage:
        """List the object files of which something was run."""
        return Coverage(("find", str(directory), "-name", "*.gcda"), "object files", LEAST_OBJECTS)

    def counted(self, directory: Path) -> tuple[str, ...]:  # noqa: ARG002 — they are put beside the objects
        """Use the profile; unreached code is still optimised for speed."""
        return (
            "-fprofile-use",
            "-fprofile-correction",
            "-fprofile-partial-training",
            "-Wno-missing-profile",
        )

    def movable(self) -> tuple[str, ...]:
        """Leave functions in one piece: BOLT splits them itself, and fails at some that are split already."""
        return ("-fno-reorder-blocks-and-partition",)

    def linked_whole(self) -> tuple[str, ...]:
        """Use as many jobs as there are CPUs; static libraries stay readable for other linkers."""
        return ("-flto=auto", "-ffat-lto-objects")

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Name the tools that read gcc's objects."""
        if not recipe.is_linked_whole:
            return {}
        return {name.upper(): self._named(f"gcc-{name}") for name in ("ar", "ranlib", "nm")}

    def _named(self, name: str) -> str:
        """Return the name of one of its programs."""
        return (
            f"{name}{self.suffix}" if self.foreign is None else f"{self.foreign.triplet}-{name}{self.suffix}"
        )
