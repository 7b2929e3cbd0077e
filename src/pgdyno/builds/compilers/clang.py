"""clang: instruments its intermediate form, merges the profiles of all processes, links with lld.

It compiles for every machine. What else it takes for another one has that machine's name: the library for
programs that count, and gcc's own, which it links with everything.

Source: Clang, "Profile Guided Optimization" (UsersManual), "ThinLTO", "Cross-compilation using Clang".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.builds.compilers._contract import Coverage
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import Recipe

MERGED = "merged.profdata"
LEAST_FUNCTIONS = 2000  # arbitrary: a server that only starts and ends reaches about 1500
_TRAINED = "trained"
"""Where the counts of the training are, which alone are wanted: programs that run without its environment,
to load data sets that are not there yet, put theirs beside."""
_POOL = "counts-%4m.profraw"
"""Processes add to one of four files, under its lock, when they end. With a file for each process, backends
and autovacuum workers would fill the disk."""


@dataclass(frozen=True)
class Clang:
    """clang of one major version; ``suffix`` ends its programs' names: ``-19``, or nothing.

    ``foreign``: the machine that it compiles for; None: this one.
    """

    suffix: str
    foreign: Foreign | None = None

    @property
    def program(self) -> str:
        """The compiler's program."""
        return f"clang{self.suffix}"

    @property
    def package(self) -> str:
        """The package that it comes in."""
        return self.program

    @property
    def cc(self) -> str:
        """The compiler as make calls it."""
        return self.program if self.foreign is None else f"{self.program} --target={self.foreign.triplet}"

    @property
    def profdata(self) -> str:
        """The program that merges and shows profile data."""
        return f"llvm-profdata{self.suffix}"

    @property
    def linker(self) -> tuple[str, ...]:
        """Link with lld, which reads LLVM's objects and is as fast on all others."""
        return ("-fuse-ld=lld",)

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return the linker, the archiver and the profile merger, as far as the recipe needs them."""
        llvm = f"llvm{self.suffix}"
        needed = {f"ld.lld{self.suffix}": f"lld{self.suffix}"}
        if self._has_own_archiver(recipe):
            needed |= {f"llvm-{name}{self.suffix}": llvm for name in ("ar", "ranlib", "nm")}
        if self.foreign is not None:
            needed[f"{self.foreign.triplet}-gcc"] = f"gcc-{self.foreign.triplet}"
        if recipe.is_counted:
            needed[self.profdata] = llvm
        return needed

    @property
    def counting_package(self) -> str:
        """The package with the profiling runtime, which Debian keeps apart from the compiler."""
        package = f"libclang-rt{self.suffix}-dev"
        return package if self.foreign is None else self.foreign.package(package)

    def counting(self, directory: Path) -> tuple[str, ...]:
        """Instrument the intermediate form: the optimiser works on that."""
        return (f"-fprofile-generate={directory}",)

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Name the pool of files that processes add their counts to."""
        return {"LLVM_PROFILE_FILE": str(directory / _TRAINED / _POOL)}

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:  # noqa: ARG002
        """Merge the files of the pool, and no others."""
        return ((self.profdata, "merge", f"--output={directory / MERGED}", str(directory / _TRAINED)),)

    def coverage(self, directory: Path) -> Coverage:
        """List the functions that were called."""
        argv = (self.profdata, "show", "--covered", str(directory / MERGED))
        return Coverage(argv, "functions", LEAST_FUNCTIONS)

    def counted(self, directory: Path) -> tuple[str, ...]:
        """Use the merged profile. Unreached code is no error: error paths, other platforms' code."""
        return (
            f"-fprofile-use={directory / MERGED}",
            "-Wno-profile-instr-unprofiled",
            "-Wno-profile-instr-out-of-date",
        )

    def movable(self) -> tuple[str, ...]:
        """BOLT accepts clang's programs."""
        return ()

    def linked_whole(self) -> tuple[str, ...]:
        """Take ThinLTO: as good as the full one for programs of this size, and parallel."""
        return ("-flto=thin",)

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Name the tools that read LLVM's objects."""
        if not self._has_own_archiver(recipe):
            return {}
        return {name.upper(): f"llvm-{name}{self.suffix}" for name in ("ar", "ranlib", "nm")}

    def _has_own_archiver(self, recipe: Recipe) -> bool:
        """Whether the system's does not read its objects: LLVM's own, and those of another machine."""
        return recipe.is_linked_whole or self.foreign is not None
