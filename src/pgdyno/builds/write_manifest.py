"""Write the manifest of a build: its sources, flags, training and checks.

Its programs run as the servers' account, which made them. The effective flags are read from the log:
configure and makefiles drop, replace and add flags, and only the executed command lines show the result.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from pgdyno.base.errors import InstallationError
from pgdyno.base.facts import Unknown
from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.compiling.publishing import hidden
from pgdyno.builds.compiling.source_build import ask, text_bytes
from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import Fetched
from pgdyno.builds.make import RunAs
from pgdyno.builds.optimise import bolt
from pgdyno.builds.product.manifest import (
    AppliedPatch,
    Manifest,
    Optimised,
    Patched,
    Rearranged,
    Trained,
    Verified,
)
from pgdyno.builds.spec.instructions import instructions
from pgdyno.host.processes.running import output_of
from pgdyno.model.plans.recipe import TRAINING_S
from pgdyno.postgres.inspection.program import read_atomics


def describe(
    plan: BuildPlan,
    modules: Sequence[str],
    fetched: Fetched,
    at: BuildDirectory,
    verified: Verified,
    build_s: float,
) -> Manifest:
    """Return the manifest of a finished build.

    Flags and sizes are read from its files.

    ``modules``: the contrib modules that were built.
    Raises: InstallationError if a program of the build fails.
    """
    package, placed = fetched.package, hidden(at.prefix)
    return Manifest(
        name=plan.name,
        server_version=ask(placed / "bin/pg_config", "--version", at.account.run_as).removeprefix(
            "PostgreSQL "
        ),
        package=package.name if package else "",
        package_version=package.version if package else "",
        suite=package.suite if package else "",
        tarball=fetched.tarball,
        tarball_sha256=fetched.sha256,
        unpacked=fetched.how,
        compiler=plan.compiler_version,
        configure=plan.options,
        cflags=ask(placed / "bin/pg_config", "--cflags", at.account.run_as),
        extensions=(*modules, *(tree.name for tree in plan.extensions.trees)),
        notes=(*plan.configure.notes(plan.major), *_untested(plan), *_lacking(plan, placed)),
        build_s=round(build_s, 1),
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        optimised=_optimised(plan, fetched, at, placed),
        verified=verified,
        machine=plan.machine,
    )


def _untested(plan: BuildPlan) -> Iterator[str]:
    for tree in plan.extensions.trees:
        yield f"{tree.name} is from {tree.path}, sha256 {tree.sha256}; its own tests were not run"


def _lacking(plan: BuildPlan, placed: Path) -> Iterator[str]:
    """Yield a sentence if the installation to replace has extensions that this build lacks."""
    there = {control.stem for control in (placed / "share").rglob("extension/*.control")}
    if names := [name for name in plan.wanted if name not in there]:
        yield f"without these extensions of the replaced server: {', '.join(names)}; --extensions adds them"


def _optimised(plan: BuildPlan, fetched: Fetched, at: BuildDirectory, placed: Path) -> Optimised:
    recipe = plan.recipe
    with at.log.open(errors="replace") as lines:
        used = used_flags(lines, plan.compiler.cc)
    return Optimised(
        source=fetched.asked,
        recipe=recipe.name,
        target=plan.target,
        common_flags=used.common,
        other_flags=used.some,
        linking_flags=used.linking,
        objects=used.objects,
        training=tuple(Trained(name, TRAINING_S) for name in plan.training) if recipe.is_trained else (),
        reached=reached(plan.compiler, at.counts, at.account.run_as) if recipe.is_counted else "",
        text_bytes=text_bytes(placed / "bin/postgres", at.account.run_as),
        rearranged=_rearranged(plan, at),
        instructions=_instructions(plan),
        atomics=_atomics(placed / "bin/postgres") if plan.machine == "aarch64" else "",
        patched=_patched(plan, placed) if plan.patches else None,
    )


def _patched(plan: BuildPlan, placed: Path) -> Patched:
    extensions = (path.stem for path in (placed / "share").rglob("extension/*.control"))
    libraries = (path.stem for path in (placed / "lib").rglob("*.so"))
    return Patched(
        tuple(AppliedPatch(patch.name, patch.sha256) for patch in plan.patches),
        tuple(sorted({*extensions, *libraries})),
    )


def _instructions(plan: BuildPlan) -> tuple[str, ...]:
    if plan.target is None:
        return ()
    return tuple(sorted(instructions(plan.compiler.cc, plan.target, plan.machine)))


def _atomics(program: Path) -> str:
    """Describe the atomic operations in the code of a program for Arm; empty if unknown."""
    with program.open("rb") as file:
        found = read_atomics(file)
    if isinstance(found, Unknown):
        return ""
    return f"{found.inline} inline, {found.outline} in helpers that ask the CPU for them first"


def _rearranged(plan: BuildPlan, at: BuildDirectory) -> Rearranged | None:
    if plan.bolt is None:
        return None
    output = at.rearranged.read_text()
    return Rearranged(plan.bolt.version, bolt.reached(output), *bolt.taken_branches(output))


_OBJECT = "-c"
_WITH_VALUE = frozenset({"-o", "-I", "-D", "-U", "-L", "-l", "-MF", "-MT", "-MQ", "-include", "-x"})
_OF_ONE_FILE = ("-I", "-L", "-l", "-D", "-U", "-M", "-o", "-c", "-S", "-E")
"""Options that name files, directories or macros: they differ per file and do not affect code generation."""
_HARDENING = "-D_FORTIFY_SOURCE"  # the only macro that changes the code of every file


@dataclass(frozen=True)
class UsedFlags:
    """Flags of a build.

    ``common``: flags of every object file, in order; ``some``: other flags, each with its number of files.
    """

    objects: int
    common: tuple[str, ...]
    some: tuple[tuple[str, int], ...]
    linking: tuple[str, ...]  # of the server's program


def used_flags(lines: Iterable[str], compiler: str) -> UsedFlags:
    """Return the flags in the output of make."""
    compiled: list[tuple[str, ...]] = []
    linking: tuple[str, ...] = ()
    for words in _commands(lines, compiler):
        if _OBJECT in words:
            compiled.append(tuple(_flags(words)))
        elif _target(words) == "postgres":
            linking = tuple(_flags(words))
    counts = Counter(flag for flags in compiled for flag in dict.fromkeys(flags))
    common = tuple(flag for flag, count in counts.items() if count == len(compiled))
    some = tuple((flag, count) for flag, count in counts.items() if count < len(compiled))
    return UsedFlags(len(compiled), common, some, linking)


def _commands(lines: Iterable[str], compiler: str) -> Iterator[list[str]]:
    """Yield every command line that runs the compiler, split into words."""
    for line in lines:
        if not line.startswith(f"{compiler} "):
            continue
        try:
            yield shlex.split(line)
        except ValueError:  # an incomplete line of a killed build
            continue


def _flags(words: list[str]) -> Iterator[str]:
    """Yield the options for code generation, excluding file names and actions."""
    skipped = False
    for word in words[1:]:
        if skipped:
            skipped = False
        elif word in _WITH_VALUE:
            skipped = True
        elif word.startswith(_HARDENING) or (word.startswith("-") and not word.startswith(_OF_ONE_FILE)):
            yield word


def _target(words: list[str]) -> str:
    """Return the base name of a command's output file; empty without ``-o``."""
    if "-o" not in words[:-1]:
        return ""
    return PurePosixPath(words[words.index("-o") + 1]).name


def gather(compiler: Compiler, counts: Path, tree: Path, run_as: RunAs) -> None:
    """Put the profile data where the compiler will read it.

    Raises: InstallationError for too small a profile, which would make uncovered code slower.
    """
    for argv in compiler.gathering(counts, tree):
        output_of(argv, run_as)
    least, number = compiler.coverage(counts).least, _reached(compiler, counts, run_as)
    if number < least:
        raise InstallationError(
            f"the training profile covers only {number} {compiler.coverage(counts).unit}",
            detail=f"a server under load covers at least {least}",
            hint="name more workloads with --train; was the server killed before it could write its counts?",
        )


def reached(compiler: Compiler, counts: Path, run_as: RunAs) -> str:
    """Return the coverage of the gathered data: ``4012 functions``."""
    return f"{_reached(compiler, counts, run_as)} {compiler.coverage(counts).unit}"


def _reached(compiler: Compiler, counts: Path, run_as: RunAs) -> int:
    return len(output_of(compiler.coverage(counts).argv, run_as).splitlines())
