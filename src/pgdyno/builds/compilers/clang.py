"""clang: instruments its intermediate representation, merges the profiles of all processes, links with lld.

One clang compiles for every machine. A foreign machine also needs packages named after that machine: the
profiling runtime, and libgcc, which clang links with everything.

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
LEAST_FUNCTIONS = 2000  # arbitrary: a server that only starts and stops covers about 1500
_TRAINED = "trained"
"""The directory of the training's profile, the only one to merge. Programs that run without the training's
environment, to load missing data sets, write theirs next to it."""
_POOL = "counts-%4m.profraw"
"""A process that exits adds its counts to one of four files, under a lock. With one file for each process,
backends and autovacuum workers would fill the disk."""


@dataclass(frozen=True)
class Clang:
    """clang of one major version; ``suffix`` of its programs' names: ``-19``, or empty.

    ``foreign``: the target machine; None: this one.
    """

    suffix: str
    foreign: Foreign | None = None

    @property
    def program(self) -> str:
        """The compiler's program."""
        return f"clang{self.suffix}"

    @property
    def package(self) -> str:
        """The compiler's package."""
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
        """Link with lld, which also reads LLVM's objects."""
        return ("-fuse-ld=lld",)

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return the linker, and if the recipe needs them the archiver tools and llvm-profdata."""
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
        """The package of the profiling runtime, separate from the compiler's in Debian."""
        package = f"libclang-rt{self.suffix}-dev"
        return package if self.foreign is None else self.foreign.package(package)

    def counting(self, directory: Path) -> tuple[str, ...]:
        """Instrument the intermediate representation, on which the optimiser works."""
        return (f"-fprofile-generate={directory}",)

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Name the pool of files to which processes add their counts."""
        return {"LLVM_PROFILE_FILE": str(directory / _TRAINED / _POOL)}

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:  # noqa: ARG002
        """Merge only the files of the pool."""
        return ((self.profdata, "merge", f"--output={directory / MERGED}", str(directory / _TRAINED)),)

    def coverage(self, directory: Path) -> Coverage:
        """List the called functions."""
        argv = (self.profdata, "show", "--covered", str(directory / MERGED))
        return Coverage(argv, "functions", LEAST_FUNCTIONS)

    def counted(self, directory: Path) -> tuple[str, ...]:
        """Use the merged profile. Uncovered code is expected: error paths, other platforms' code."""
        return (
            f"-fprofile-use={directory / MERGED}",
            "-Wno-profile-instr-unprofiled",
            "-Wno-profile-instr-out-of-date",
        )

    def movable(self) -> tuple[str, ...]:
        """Return no flags: BOLT accepts clang's programs."""
        return ()

    def linked_whole(self) -> tuple[str, ...]:
        """Use ThinLTO: as good as full LTO for programs of this size, and parallel."""
        return ("-flto=thin",)

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Name the tools that read LLVM's objects."""
        if not self._has_own_archiver(recipe):
            return {}
        return {name.upper(): f"llvm-{name}{self.suffix}" for name in ("ar", "ranlib", "nm")}

    def _has_own_archiver(self, recipe: Recipe) -> bool:
        """Whether the system's archiver cannot read the objects: LLVM's own, or a foreign machine's."""
        return recipe.is_linked_whole or self.foreign is not None
