"""The use case ``build``: an optimised PostgreSQL from its own source.

It is made in stages that are done once.

    unpack → configure → [compile for counting → train] → compile
           → [make it count branches → train on branches → rearrange] → verify → install

A build is called by what goes into it, so that whoever asks for the same again has it at once, and whoever
asks again after an interruption goes on where it stopped. As root, sources are compiled and trained by the
servers' unprivileged account; what it has made is copied, and the copy belongs to root.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app.building.baseline_build import find_baseline_build
from pgdyno.app.building.fetch import Fetched, changed
from pgdyno.app.building.inherited_features import InheritedFeatures, find_inherited_features
from pgdyno.app.building.parts import PARTS
from pgdyno.app.building.stages import Building, BuildParts
from pgdyno.app.building.training import identity
from pgdyno.app.local_machine import workspace
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.journal.files.source_tree import opened_tree
from pgdyno.model import numbers
from pgdyno.model.errors import InstallationError, UsageError
from pgdyno.model.facts import Unknown
from pgdyno.model.plans.recipe import (
    AUTO,
    PLAIN,
    STRONGEST,
    TRAINED_ON,
    WITHOUT_BOLT,
    Recipe,
    parse_recipe,
    parse_target,
)
from pgdyno.model.ports import Progress
from pgdyno.server.process.installation import Installation
from pgdyno.server.process.registry import find_installation
from pgdyno.server.process.workspace import Workspace
from pgdyno.toolchain.compilers._contract import Compiler
from pgdyno.toolchain.compiling.build_plan import BuildPlan
from pgdyno.toolchain.host.find_compiler import find_compiler
from pgdyno.toolchain.host.prerequisites import (
    Need,
    compiler_version,
    find_options,
    missing_error,
    missing_features,
    missing_headers,
    missing_programs,
    require_target,
)
from pgdyno.toolchain.optimise.bolt import PACKAGE, Bolt
from pgdyno.toolchain.product.manifest import Manifest, read_manifest
from pgdyno.toolchain.source.extensions import parse_extensions
from pgdyno.toolchain.source.source import Package, parse_source
from pgdyno.toolchain.spec.configure_options import ConfigureOptions, options_like
from pgdyno.toolchain.spec.foreign import NO_BOLT, Foreign, parse_machine, require_possible, require_runs

_NEEDED_BYTES = 2 << 30  # measured: source 160 MB, objects 400 MB, two installations, counts
_SERVER_BYTES = 500 << 20  # of memory: a server in training, with what loads it
_COMPILER_BYTES = 200 << 20  # of each that runs at the same time; measured: clang 19, linking included
_BOLT_BYTES = 2300 << 20  # measured: BOLT 19 with a program of 9 MB of machine code
_WORD = re.compile(r"[\w/.+-]+")
_ELSEWHERE = "remove something, or set PGDYNO_HOME to a directory on a larger disk"


@dataclass(frozen=True)
class BuildRequest:
    """A request for a build.

    ``target`` None: the recipe's; no ``training``: ``TRAINED_ON``.

    ``like``: the installation whose features it takes over; None: it has what the host has libraries for.
    ``extensions``: contrib's modules by their names, and directories. ``machine`` None: this one.
    """

    source: str
    recipe: str
    compiler: str
    target: str | None = None
    training: tuple[str, ...] = ()
    like: str | None = None
    extensions: tuple[str, ...] = ()
    machine: str | None = None


def build(request: BuildRequest, progress: Progress, parts: BuildParts = PARTS) -> Manifest:
    """Make the requested build unless it exists, and return its manifest.

    Raises: UsageError, RefusedError for what cannot be built so; InstallationError for what is missing, not
    to be had, or failed; StorageError if the disk is too small; errors of servers and generators in training.
    """
    return _build(request, progress, parts)


def _build(
    request: BuildRequest, progress: Progress, parts: BuildParts, following_s: float = 0.0
) -> Manifest:
    """Make the build unless it exists.

    ``following_s``: expected duration of the work that follows this build in the same run.
    """
    place = workspace()
    workloads = tuple(find_workloads(request.training or TRAINED_ON).values())
    fetched, plan = _plan(request, tuple(map(identity, workloads)), place, progress, parts)
    found = _installed(place.servers() / plan.name)
    if found is not None:
        progress.step(f"{plan.name} is there already")
        # One that was killed at its very end has left the directory that it worked in.
        shutil.rmtree(place.builds() / plan.name, ignore_errors=True)
        return found
    _require_word(place.root)
    place.require_free(_NEEDED_BYTES, "building PostgreSQL", _ELSEWHERE)
    _require_memory(plan, parts.available_memory_bytes())
    if not following_s:  # else it was said before
        for sentence in plan.configure.left_out:
            progress.step(sentence)
    building = Building(place, plan, fetched, None, progress, parts, workloads, following_s)
    if plan.is_plain:
        return building.run()
    return replace(building, reference=_reference(request, building)).run()


def _require_word(root: Path) -> None:
    """Raise UsageError for a path that make, and the shells that it runs, would take apart."""
    if not _WORD.fullmatch(str(root)):
        raise UsageError(
            f'PostgreSQL cannot be built in "{root}"',
            detail="make would not take that for one word, as it does with letters, digits, and / _ . + -",
            hint="set PGDYNO_HOME to another directory",
        )


def _require_memory(plan: BuildPlan, available_bytes: int) -> None:
    """Raise InstallationError now rather than let the kernel end a linker, or a server. 0: nobody knows."""
    compilers = len(os.sched_getaffinity(0))  # as many as make runs
    largest, what = (
        compilers * _COMPILER_BYTES,
        f"{numbers.size(_COMPILER_BYTES)} for each of {compilers} compilers",
    )
    if plan.bolt is not None and largest < _BOLT_BYTES:
        largest, what = _BOLT_BYTES, f"{numbers.size(_BOLT_BYTES)} for BOLT"
    needed_bytes = _SERVER_BYTES + largest
    if 0 < available_bytes < needed_bytes:
        raise InstallationError(
            "not enough memory for building PostgreSQL",
            detail=f"needed {numbers.size(needed_bytes)}, available {numbers.size(available_bytes)}: "
            f"{numbers.size(_SERVER_BYTES)} for a server, {what}",
            hint="stop something, or raise the limit of the container or service that this runs in",
        )


def _plan(
    request: BuildRequest,
    training: tuple[str, ...],
    place: Workspace,
    progress: Progress,
    parts: BuildParts,
) -> tuple[Fetched, BuildPlan]:
    """Return the source and the build's plan. ``training`` are the workloads' identities.

    Requests that can be refused before fetching the source are refused before it.
    """
    foreign, target, bolt = _foreign(request), parse_target(request.target), parts.find_bolt()
    machine = platform.machine() if foreign is None else foreign.machine
    recipe = _recipe(request.recipe, bolt, foreign, progress)
    if foreign is not None:
        require_possible(foreign, recipe, target)
    _require_trained(request.training, recipe)
    extensions = parse_extensions(request.extensions, opened_tree)
    inherited = _inherited_features(request, place)
    compiler = _compiler(request, recipe, bolt, foreign, inherited)
    if target is not None:
        require_target(compiler.cc, target, machine)
    if foreign is not None:
        require_runs(foreign, compiler.cc, compiler.linker, place.builds())
    fetched = parts.fetch(request.source, place, progress)
    plan = BuildPlan(
        source_sha256=fetched.sha256,
        version=fetched.version,
        recipe=recipe,
        compiler=compiler,
        compiler_version=compiler_version(compiler.cc),
        target=target or (recipe.target if foreign is None else None),
        machine=machine,
        foreign=foreign,
        configure=_configure(fetched, inherited, compiler.cc, foreign),
        training=training,
        extensions=extensions,
        wanted=() if inherited is None else inherited.extensions,
    )
    if bolt is None or not recipe.is_rearranged:
        return fetched, plan
    return fetched, replace(plan, bolt=replace(bolt, is_position_independent=recipe.is_hardened))


def _foreign(request: BuildRequest) -> Foreign | None:
    """Return the requested machine, if it is another one. Raises: UsageError with ``--like``."""
    foreign = parse_machine(request.machine)
    if foreign is not None and request.like is not None:
        raise UsageError(
            f"--like is not for --machine {foreign.machine}",
            detail="whether this host has for another machine all that an installation was built with, "
            "pgdyno does not know",
            hint="leave --like out: support for the libraries installed for that machine is then built in",
        )
    return foreign


def _compiler(
    request: BuildRequest,
    recipe: Recipe,
    bolt: Bolt | None,
    foreign: Foreign | None,
    inherited: InheritedFeatures | None,
) -> Compiler:
    """Return the compiler. Raises: InstallationError naming all that the host lacks for the build."""
    missing = [Need("llvm-bolt", PACKAGE)] if recipe.is_rearranged and bolt is None else []
    missing += missing_programs()
    compiler = find_compiler(request.compiler, recipe, foreign, missing)
    missing += missing_headers(compiler.cc, foreign)
    if inherited is not None:
        missing += missing_features(inherited.features, inherited.major, compiler.cc)
    if missing:
        raise missing_error(missing, foreign)
    return compiler


def _inherited_features(request: BuildRequest, place: Workspace) -> InheritedFeatures | None:
    """Return the features to inherit; None without ``--like``.

    Raises: UsageError if the package that is named is of another major.
    """
    if request.like is None:
        return None
    inherited, source = (
        find_inherited_features(request.like, place),
        parse_source(request.source, opened_tree),
    )
    if isinstance(source, Package):
        inherited.require_major(source.major, request.source)
    return inherited


def _configure(
    fetched: Fetched, inherited: InheritedFeatures | None, compiler: str, foreign: Foreign | None
) -> ConfigureOptions:
    """Return the features of a build. Raises: UsageError for those of another major version."""
    if inherited is None:
        return find_options([fetched.major], "", wants_liburing=None, compiler=compiler, foreign=foreign)
    inherited.require_major(fetched.major, fetched.asked)
    return options_like(inherited.features, compiler)


def _installed(prefix: Path) -> Manifest | None:
    """Return the manifest of a build that is there. Raises: InstallationError if it is not to be trusted."""
    if not prefix.exists():
        return None
    found = read_manifest(prefix).value
    if isinstance(found, Unknown) or found.verified is None:
        why = (
            f"its manifest: {found.reason}"
            if isinstance(found, Unknown)
            else "it failed when it was last tried"
        )
        raise InstallationError(
            f"{prefix.name} is there, and not to be trusted",
            detail=why,
            hint=f"pgdyno build verify {prefix.name} tries it again; or remove {prefix}, and ask again",
        )
    return found


def _recipe(asked: str, bolt: Bolt | None, foreign: Foreign | None, progress: Progress) -> Recipe:
    """Return the requested recipe. Raises: UsageError."""
    if asked == AUTO and (bolt is None or foreign is not None):
        progress.step(f"without BOLT: {NO_BOLT if foreign is not None else f'{PACKAGE} is not installed'}")
        return parse_recipe(WITHOUT_BOLT)
    return parse_recipe(STRONGEST if asked == AUTO else asked)


def _require_trained(asked: tuple[str, ...], recipe: Recipe) -> None:
    """Raise UsageError if workloads are given, and nothing is trained."""
    if asked and not recipe.is_trained:
        raise UsageError(
            "--train needs a recipe with pgo or bolt",
            detail=f"requested: {recipe.name}",
            hint=f"--recipe {recipe.name}+pgo, or leave --train out",
        )


def _reference(request: BuildRequest, building: Building) -> Installation:
    """Return a baseline build of the same source, which is made if there is none yet.

    It needs no extensions: data that are read by both are those of what every build has.
    Raises: InstallationError if the source has changed since it was looked at.
    """
    plan, place, progress = building.plan, building.place, building.progress
    found = find_baseline_build(plan.source_sha256, plan.options, place)
    if found is None:
        progress.step("first a baseline build of the same source, to hold the faster one against")
        plain = replace(request, recipe=PLAIN, target=None, training=(), extensions=())
        made = _build(plain, progress, building.parts, building.expected_s)
        if made.tarball_sha256 != plan.source_sha256:
            raise changed(request.source)
        found = find_installation(made.name, place)
    progress.step(f"to be verified against {found.name}, a baseline build of the same source")
    return found
