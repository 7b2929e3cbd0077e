"""The contract of compilers: flags and variables by part of a recipe. Everything here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.model.plans.recipe import Recipe


@dataclass(frozen=True)
class Coverage:
    """How to see that training has reached enough: ``argv`` prints a line for each unit that was reached.

    ``least`` of them have to be: with fewer the counts are of something else than a server under load.
    """

    argv: tuple[str, ...]
    unit: str
    least: int


class Compiler(Protocol):
    """One compiler of one version, with the programs that belong to it."""

    @property
    def program(self) -> str:
        """The compiler's program: ``clang-19``."""
        ...

    @property
    def package(self) -> str:
        """The package that it comes in."""
        ...

    @property
    def cc(self) -> str:
        """The compiler as make calls it: the program, with options for another target machine."""
        ...

    @property
    def linker(self) -> tuple[str, ...]:
        """The flags that choose the linker."""
        ...

    def needs(self, recipe: Recipe) -> Mapping[str, str]:
        """Return the programs besides the compiler itself that a recipe takes, and their packages."""
        ...

    @property
    def counting_package(self) -> str:
        """The package of the library that programs which count are linked with."""
        ...

    def counting(self, directory: Path) -> tuple[str, ...]:
        """Return the flags of an instrumented program."""
        ...

    def counting_environment(self, directory: Path) -> Mapping[str, str]:
        """Return the environment in which such a program keeps its counts in ``directory``."""
        ...

    def gathering(self, directory: Path, tree: Path) -> Sequence[tuple[str, ...]]:
        """Return the commands that put profile data to the compiler."""
        ...

    def coverage(self, directory: Path) -> Coverage:
        """Return the command that shows the coverage of gathered profile data."""
        ...

    def counted(self, directory: Path) -> tuple[str, ...]:
        """Return the flags that use profile data."""
        ...

    def movable(self) -> tuple[str, ...]:
        """Return the flags for code that BOLT can rearrange."""
        ...

    def linked_whole(self) -> tuple[str, ...]:
        """Return the flags for optimising at link time."""
        ...

    def make_variables(self, recipe: Recipe) -> Mapping[str, str]:
        """Return variables for make: the archiver and its like that understand the compiler's objects."""
        ...
