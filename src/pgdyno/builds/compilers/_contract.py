"""The contract of compilers: flags and variables by part of a recipe. Everything here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.model.plans.recipe import Recipe


@dataclass(frozen=True)
class Coverage:
    """How to check that training covered enough code: ``argv`` prints one line per covered unit.

    ``least``: the required number; with fewer, the profile is not that of a server under load.
    """

    argv: tuple[str, ...]
    unit: str
    least: int


class Compiler(Protocol):
    """One version of one compiler, with its programs."""

    @property
    def program(self) -> str:
        """The compiler's program: ``clang-19``."""
        ...

    @property
    def package(self) -> str:
        """The compiler's package."""
        ...

    @property
    def cc(self) -> str:
        """The compiler as make calls it: the program, with options for a foreign machine."""
        ...

    @property
    def linker(self) -> tuple[str, ...]:
        """The flags that choose the linker."""
        ...

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return the other programs that a recipe needs, and their packages."""
        ...

    @property
    def counting_package(self) -> str:
        """The package of the profiling runtime, which instrumented programs are linked with."""
        ...

    def counting(self, directory: Path) -> tuple[str, ...]:
        """Return the flags of an instrumented program."""
        ...

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Return the environment in which an instrumented program writes its profile into ``directory``."""
        ...

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:
        """Return the commands that prepare profile data for the compiler."""
        ...

    def coverage(self, directory: Path) -> Coverage:
        """Return the check for coverage of the gathered profile data."""
        ...

    def counted(self, directory: Path) -> tuple[str, ...]:
        """Return the flags that use profile data."""
        ...

    def movable(self) -> tuple[str, ...]:
        """Return the flags for code that BOLT can rearrange."""
        ...

    def linked_whole(self) -> tuple[str, ...]:
        """Return the flags for link-time optimisation."""
        ...

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Return make's variables for ar, ranlib and nm that read the compiler's objects."""
        ...
