"""The builds that a plan may choose, and the advice to make one."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pgdyno.accelerate.planning import builds_to_choose
from pgdyno.accelerate.request import BuildAdvice
from pgdyno.base.errors import InstallationError, InterruptedByUserError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.build import build
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.built_servers import optimised_builds
from pgdyno.builds.needs.find_compiler import find_compiler
from pgdyno.builds.needs.prerequisites import missing_error, missing_headers, missing_programs
from pgdyno.builds.optimise.bolt import find_bolt
from pgdyno.measure.conditions import Conditions
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.plans.recipe import AUTO, STRONGEST, WITHOUT_BOLT, KnownBuild, parse_recipe
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace

BUILD_MINUTES = 20
"""Duration of a first build; measured: 17 to 27 minutes on two cores, docs/guides/build.md."""
BUILD_GAIN = 0.30
"""Typical gain; measured: +27 … +46 %, docs/guides/build.md."""
_RESUME_HINT = "finished stages are kept: the same command resumes at the interrupted stage"


def require_patched_build(conditions: Conditions) -> None:
    """Raise UsageError if no patched build is available to scratch servers."""
    used = conditions.installation
    builds = builds_to_choose(conditions) or ()
    if used is not None and not any(one.major == used.major and one.is_patched for one in builds):
        raise UsageError(
            f"no verified build of PostgreSQL {used.major} with patches is installed",
            hint=f"pgdyno build --source {source_of(used)} --patch NAME makes one (docs/guides/build.md)",
        )


def missing_for_a_build() -> str:
    """Return the missing prerequisites of a build, with their packages; empty: none."""
    recipe = parse_recipe(WITHOUT_BOLT if find_bolt() is None else STRONGEST)
    missing = missing_programs()
    try:
        compiler = find_compiler(AUTO, recipe, None, missing)
        missing += missing_headers(compiler.cc)
        if missing:
            raise missing_error(missing)
    except InstallationError as error:
        return "; ".join(filter(None, (error.detail, error.hint)))
    return ""


def build_advice(
    conditions: Conditions,
    layers: tuple[Layer, ...],
    plan: Plan,
    missing: Callable[[], str] = missing_for_a_build,
) -> BuildAdvice | None:
    """Return the advice on a build; None if an optimised build is in use, or builds were not requested."""
    used = conditions.installation
    if used is None or plan.server is not None or Layer.COMPILER not in layers:
        return None
    prefix = used.bin_directory.resolve().parent
    if any(one.resolve() == prefix for one, _ in optimised_builds(workspace())):
        return None
    return BuildAdvice(f"pgdyno build --source {source_of(used)}", BUILD_MINUTES, BUILD_GAIN, missing())


def source_of(installation: Installation) -> str:
    """Return the package source of an installation's major version, as ``pgdyno build --source`` takes it."""
    return f"debian:{installation.major}"


def make_build(
    conditions: Conditions,
    progress: Progress,
    known: Collection[KnownBuild] | None = None,
    make: Callable[[BuildRequest, Progress], object] = build,
) -> None:
    """Make a verified build of the same major version, unless an equally recent one exists.

    ``known`` are the existing builds; None: they are looked up.

    Raises: InstallationError with the missing prerequisites; what building raises; InterruptedByUserError.
    """
    used = conditions.installation
    if used is None:
        return
    found = builds_to_choose(conditions) or () if known is None else known
    if any(_could_run(one, used) for one in found):
        return
    try:
        make(BuildRequest(source_of(used), AUTO, AUTO), progress)
    except KeyboardInterrupt as interrupt:
        raise InterruptedByUserError("interrupted", hint=_RESUME_HINT) from interrupt


def _could_run(known: KnownBuild, used: Installation) -> bool:
    """Whether a plan may choose a build: same major version, and no older release."""
    release = tuple(int(part) for part in used.version.split(".") if part.isdigit())
    return known.major == used.major and known.release >= release
