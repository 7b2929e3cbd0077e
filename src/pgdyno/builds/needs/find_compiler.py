"""Find the compiler of a build, and name missing packages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.compilers.clang import Clang
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs.prerequisites import Need, compiles, missing_error
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.host.processes.running import is_installed
from pgdyno.model.plans.recipe import AUTO, COMPILERS, Recipe

_KINDS: dict[str, type[Clang | Gcc]] = {"clang": Clang, "gcc": Gcc}
_SUGGESTED = {"clang": "-19", "gcc": ""}


def find_compiler(
    name: str, recipe: Recipe, foreign: Foreign | None = None, besides: Sequence[Need] = ()
) -> Compiler:
    """Return the newest compiler of a kind that supports the recipe; ``auto``: of any kind.

    ``foreign``: the target machine; None: this one.
    ``besides``: other missing prerequisites, to be named in the same error.
    Raises: InstallationError naming the missing packages, for the compiler that lacks fewest.
    """
    kinds = COMPILERS if name == AUTO else (name,)
    candidates = [compiler for kind in kinds for compiler in _installed(kind, foreign)]
    lacking = [(compiler, _missing(compiler, recipe)) for compiler in candidates]
    complete = next((compiler for compiler, missing in lacking if not missing), None)
    if complete is not None:
        return complete
    if not lacking:
        kind = kinds[0]
        suggested = _KINDS[kind](_SUGGESTED[kind], foreign)
        needed = [Need(suggested.program, suggested.package), *_missing(suggested, recipe)]
        if recipe.is_counted and suggested.counting_package != suggested.package:
            needed.append(_counting(suggested))
        raise missing_error([*needed, *besides], foreign)
    raise missing_error([*min((missing for _, missing in lacking), key=len), *besides], foreign)


def _installed(kind: str, foreign: Foreign | None) -> Iterator[Compiler]:
    """Yield the installed versions of a compiler: the unnumbered one, then the others newest first."""
    unnumbered = _KINDS[kind]("", foreign)
    numbered = re.compile(rf"^{re.escape(unnumbered.program)}-(\d+)$")
    versions = {
        int(found[1])
        for directory in os.get_exec_path()
        for program in _programs(Path(directory))
        if (found := numbered.match(program.name))
    }
    suffixes = [f"-{version}" for version in sorted(versions, reverse=True)]
    for compiler in (unnumbered, *(_KINDS[kind](suffix, foreign) for suffix in suffixes)):
        if is_installed(compiler.program):
            yield compiler


def _programs(directory: Path) -> list[Path]:
    return list(directory.iterdir()) if directory.is_dir() else []  # PATH may name missing directories


def _missing(compiler: Compiler, recipe: Recipe) -> list[Need]:
    needs = compiler.needs(recipe)
    missing = [Need(program, package) for program, package in needs.items() if not is_installed(program)]
    if recipe.is_counted and not missing and is_installed(compiler.program) and not _can_count(compiler):
        return [_counting(compiler)]
    return missing


def _counting(compiler: Compiler) -> Need:
    return Need(f"the profiling runtime of {compiler.program}", compiler.counting_package)


def _can_count(compiler: Compiler) -> bool:
    """Whether an instrumented program can be linked: the profiling runtime may be a separate package."""
    flags = (*compiler.counting(Path("/nowhere")), *compiler.linker)
    return compiles(compiler.cc, flags, "int main(void) { return 0; }\n") is None
