"""A request for a build, and the build plan made from it once its source is fetched."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.fetch import Fetched
from pgdyno.builds.needs.find_compiler import find_compiler
from pgdyno.builds.needs.prerequisites import (
    Need,
    compiler_version,
    find_options,
    missing_error,
    missing_features,
    missing_headers,
    missing_programs,
    require_target,
)
from pgdyno.builds.optimise.bolt import PACKAGE, Bolt
from pgdyno.builds.patching.patches import choose_patches, require_known
from pgdyno.builds.source.extensions import parse_extensions
from pgdyno.builds.source.source import Package, parse_source
from pgdyno.builds.spec.configure_options import ConfigureOptions, options_like
from pgdyno.builds.spec.features import Features, take_over
from pgdyno.builds.spec.foreign import NO_BOLT, Foreign, parse_machine, require_possible, require_runs
from pgdyno.builds.stages import BuildParts
from pgdyno.host.files.source_tree import opened_tree
from pgdyno.model.plans.recipe import (
    AUTO,
    STRONGEST,
    WITHOUT_BOLT,
    Recipe,
    parse_recipe,
    parse_target,
    patched,
)
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.workspace import Workspace

_CONFIGURE, _SHARED = "CONFIGURE", "SHAREDIR"  # names in pg_config's output
_NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class InheritedFeatures:
    """The features of an installation.

    ``asked``: its name as given; ``extensions``: those available to its databases.
    """

    asked: str
    major: int
    features: Features
    extensions: tuple[str, ...]

    def require_major(self, major: int, source: str) -> None:
        """Raise UsageError unless a source is of the same major version."""
        if major != self.major:
            raise UsageError(
                f'--like "{self.asked}" is PostgreSQL {self.major}, --source "{source}" is {major}',
                detail="a build replaces a server of the same major version: another version cannot "
                "read its data,\n         and has other configure defaults",
                hint=f"name a source of PostgreSQL {self.major}, or an installation of PostgreSQL {major}",
            )


@dataclass(frozen=True)
class BuildRequest:
    """A request for a build.

    ``target`` None: the recipe's target. ``training``: each ``WORKLOAD[:setting=value,…]``; empty:
    ``TRAINED_ON``.

    ``like``: the installation to inherit features from; None: all features with libraries on this host.
    ``extensions``: names of contrib modules, and directories. ``machine`` None: this machine.
    ``patches``: names in the catalogue of patches; any patch adds ``patched`` to the recipe.
    """

    source: str
    recipe: str
    compiler: str
    target: str | None = None
    training: tuple[str, ...] = ()
    like: str | None = None
    extensions: tuple[str, ...] = ()
    machine: str | None = None
    patches: tuple[str, ...] = ()


def plan_build(
    request: BuildRequest,
    training: tuple[str, ...],
    place: Workspace,
    progress: Progress,
    parts: BuildParts,
) -> tuple[Fetched, BuildPlan]:
    """Return the source and the build plan. ``training`` are the lessons' identities.

    A request is refused before fetching the source where possible.
    """
    foreign, target, bolt = _foreign(request), parse_target(request.target), parts.find_bolt()
    machine = platform.machine() if foreign is None else foreign.machine
    recipe = _recipe(request, bolt, foreign, progress)
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
        patches=choose_patches(request.patches, fetched.major),
    )
    if bolt is None or not recipe.is_rearranged:
        return fetched, plan
    return fetched, replace(plan, bolt=replace(bolt, is_position_independent=recipe.is_hardened))


def _foreign(request: BuildRequest) -> Foreign | None:
    """Return the requested machine, or None for this one. Raises: UsageError with ``--like``."""
    foreign = parse_machine(request.machine)
    if foreign is not None and request.like is not None:
        raise UsageError(
            f"--like cannot be used with --machine {foreign.machine}",
            detail="pgdyno cannot check whether this host has, for another machine, all libraries that an "
            "installation was built with",
            hint="omit --like to build in support for the libraries installed for that machine",
        )
    return foreign


def _compiler(
    request: BuildRequest,
    recipe: Recipe,
    bolt: Bolt | None,
    foreign: Foreign | None,
    inherited: InheritedFeatures | None,
) -> Compiler:
    """Return the compiler. Raises: InstallationError naming every missing prerequisite of the build."""
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

    Raises: UsageError if the named source package is of another major version.
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
    """Return the configure options. Raises: UsageError if ``inherited`` is of another major version."""
    if inherited is None:
        return find_options([fetched.major], "", wants_liburing=None, compiler=compiler, foreign=foreign)
    inherited.require_major(fetched.major, fetched.asked)
    return options_like(inherited.features, compiler)


def _recipe(request: BuildRequest, bolt: Bolt | None, foreign: Foreign | None, progress: Progress) -> Recipe:
    """Return the requested recipe. Raises: UsageError, also for unknown patches."""
    if request.patches:
        _require_patches(request)
    recipe = _named_recipe(request.recipe, bolt, foreign, progress)
    if recipe.is_patched and not request.patches:
        raise UsageError(
            f'--recipe "{request.recipe}" names no patch',
            hint="--patch NAME adds a patch, and patched to the recipe",
        )
    return patched(recipe) if request.patches else recipe


def _require_patches(request: BuildRequest) -> None:
    require_known(request.patches)
    source = parse_source(request.source, opened_tree)
    if isinstance(source, Package):  # versions of other sources are known only once they are fetched
        choose_patches(request.patches, source.major)


def _named_recipe(name: str, bolt: Bolt | None, foreign: Foreign | None, progress: Progress) -> Recipe:
    if name == AUTO and (bolt is None or foreign is not None):
        progress.step(f"without BOLT: {NO_BOLT if foreign is not None else f'{PACKAGE} is not installed'}")
        return parse_recipe(WITHOUT_BOLT)
    return parse_recipe(STRONGEST if name == AUTO else name)


def _require_trained(workloads: tuple[str, ...], recipe: Recipe) -> None:
    """Raise UsageError for training workloads without a trained recipe."""
    if workloads and not recipe.is_trained:
        raise UsageError(
            "--train needs a recipe with pgo or bolt",
            detail=f"requested: {recipe.name}",
            hint=f"use --recipe {recipe.name}+pgo, or omit --train",
        )


def find_inherited_features(asked: str, place: Workspace) -> InheritedFeatures:
    """Return the features of an installation.

    ``asked``: its prefix, its bin directory, or a server's name.

    Raises: UsageError, ServerError for no installation; InstallationError if its build options are unknown.
    """
    installation = find_installation(asked, place)
    configuration = _read_pg_config(installation, place)
    controls = Path(configuration.get(_SHARED, "")).glob("extension/*.control")
    return InheritedFeatures(
        asked,
        installation.major,
        take_over(shlex.split(configuration[_CONFIGURE])),
        tuple(sorted(control.stem for control in controls)),
    )


def _read_pg_config(installation: Installation, place: Workspace) -> dict[str, str]:
    """Return the output of pg_config, by name.

    Raises: InstallationError if it does not list the configure options.
    """
    output = installation.build_configuration(place.account)
    if isinstance(output.value, Unknown):
        raise _unknown(
            installation,
            f"{output.source}: {output.value.reason}",
            f"Debian and Ubuntu have it in postgresql-client-{installation.major}",
        )
    found = [line.partition("=") for line in output.value.splitlines()]
    members = {name.strip(): value.strip() for name, _, value in found}
    if members.get(_CONFIGURE, "") in {"", _NOT_RECORDED}:
        raise _unknown(
            installation,
            f"{output.source} lists no options: it was built without any, or by meson",
            "omit --like to build in support for the host's libraries",
        )
    return members


def _unknown(installation: Installation, detail: str, hint: str) -> InstallationError:
    return InstallationError(f"it is unknown how {installation.title} was built", detail=detail, hint=hint)
