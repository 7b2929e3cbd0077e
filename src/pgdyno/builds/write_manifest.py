"""Write the manifest of a build: its sources, flags, training and checks.

Its programs run as the servers' account, which made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.base.facts import Unknown
from pgdyno.builds.compiling.build_log import used_flags
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.compiling.publishing import hidden
from pgdyno.builds.compiling.source_build import ask, text_bytes
from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import Fetched
from pgdyno.builds.optimise import bolt
from pgdyno.builds.optimise.profile_data import reached
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
