"""gcc: keeps profile data next to each object file, so both programs are compiled at the same path.

Source: GCC, "Program Instrumentation Options", "Options That Control Optimization", gcov's "Cross-profiling".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.builds.compilers._contract import Coverage
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import Recipe

LEAST_OBJECTS = 400  # arbitrary: the server's program has about 850


@dataclass(frozen=True)
class Gcc:
    """gcc of one version; ``suffix`` of its programs' names: ``-14``, or empty.

    ``foreign``: the target machine, whose triplet is the prefix of the programs' names; None: this one.
    """

    suffix: str = ""
    foreign: Foreign | None = None

    @property
    def program(self) -> str:
        """The compiler's program."""
        return self._named("gcc")

    @property
    def package(self) -> str:
        """The compiler's package."""
        return f"gcc{self.suffix}" if self.foreign is None else f"gcc{self.suffix}-{self.foreign.triplet}"

    @property
    def cc(self) -> str:
        """The compiler as make calls it: a separate program for each machine."""
        return self.program

    @property
    def linker(self) -> tuple[str, ...]:
        """Return no flags: gcc uses the system's linker."""
        return ()

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return gcc's archiver tools for link-time optimisation; binutils and gcov come with gcc."""
        names = ("ar", "ranlib", "nm") if recipe.is_linked_whole else ()
        return {self._named(f"gcc-{name}"): self.package for name in names}

    @property
    def counting_package(self) -> str:
        """The compiler's package, which includes the profiling runtime."""
        return self.package

    def counting(self, directory: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Count per process, without atomics: backends have one thread, and merge their counts on exit.

        The environment names the directory.
        gcc 12 crashed on profiles made with atomic counters (-fprofile-update=prefer-atomic).
        """
        return ("-fprofile-generate",)

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Prefix the path of every profile file with ``directory``."""
        return {"GCOV_PREFIX": str(directory)}

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:
        """Copy the profile data next to the objects to compile.

        Existing profile data there is from programs that ran outside the training: build tools, data loading.
        """
        return (
            ("find", str(tree), "-name", "*.gcda", "-delete"),
            ("cp", "--archive", f"{directory}{tree}/.", f"{tree}/"),
        )

    def coverage(self, directory: Path) -> Coverage:
        """List the object files with executed code."""
        return Coverage(("find", str(directory), "-name", "*.gcda"), "object files", LEAST_OBJECTS)

    def counted(self, directory: Path) -> tuple[str, ...]:  # noqa: ARG002 — profile data is next to the objects
        """Use the profile; uncovered code is still optimised for speed."""
        return (
            "-fprofile-use",
            "-fprofile-correction",
            "-fprofile-partial-training",
            "-Wno-missing-profile",
        )

    def movable(self) -> tuple[str, ...]:
        """Keep functions whole: BOLT splits them itself, and fails on some that are already split."""
        return ("-fno-reorder-blocks-and-partition",)

    def linked_whole(self) -> tuple[str, ...]:
        """Use one job per CPU, and keep static libraries readable for other linkers."""
        return ("-flto=auto", "-ffat-lto-objects")

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Name the tools that read gcc's objects."""
        if not recipe.is_linked_whole:
            return {}
        return {name.upper(): self._named(f"gcc-{name}") for name in ("ar", "ranlib", "nm")}

    def _named(self, name: str) -> str:
        return (
            f"{name}{self.suffix}" if self.foreign is None else f"{self.foreign.triplet}-{name}{self.suffix}"
        )
