"""The compiler's layer of ``accelerate``: existing builds, their gain, building."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pgdyno.app.building.build import BuildRequest, build
from pgdyno.app.building.built_servers import optimised_builds
from pgdyno.app.local_machine import workspace
from pgdyno.app.measuring.measure import Conditions
from pgdyno.app.planning.known_builds import known_builds
from pgdyno.model import numbers
from pgdyno.model.errors import InstallationError, InterruptedByUserError
from pgdyno.model.plans.build import AUTO, STRONGEST, WITHOUT_BOLT, parse_profile
from pgdyno.model.plans.builds import KnownBuild
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.ports import Progress
from pgdyno.server.process.installation import Installation
from pgdyno.toolchain.host.find_compiler import find_compiler
from pgdyno.toolchain.host.prerequisites import missing_error, missing_headers, missing_programs
from pgdyno.toolchain.optimise.bolt import find_bolt

BUILD_MINUTES = 26
"""How long a build takes, its verification included; measured on two busy cores, docs/guides/build.md."""

BUILD_GAIN = 0.30
"""About what it gained; measured: +27 … +46 %, docs/guides/build.md."""

_GOES_ON = "finished stages are kept: the same command resumes at the interrupted stage"


@dataclass(frozen=True)
class BuildAdvice:
    """The gain of another build for a plan.

    ``missing`` lists the prerequisites that this host lacks for one; empty: none.
    """

    command: str
    minutes: int
    gain: float
    missing: str

    @property
    def sentence(self) -> str:
        """A sentence on a build's gain, with its duration and command or missing packages."""
        gain = f"about {numbers.change(1 + self.gain, 0)} (docs/guides/build.md)"
        if self.missing:
            return f"A build with a profile could bring {gain}; it cannot be made here yet: {self.missing}."
        return (
            f"A build with a profile takes about {self.minutes} more minutes, for {gain}: {self.command}, or "
            "--build; the next run uses it without asking."
        )


def builds_to_choose(conditions: Conditions) -> tuple[KnownBuild, ...] | None:
    """Return the builds that scratch servers could run instead.

    None means that the present installation is unknown.
    """
    if conditions.installation is None:
        return None
    return known_builds(workspace(), conditions.installation.bin_directory)


def missing_for_a_build() -> str:
    """Return the missing prerequisites of a build, with their packages; empty: none."""
    profile = parse_profile(WITHOUT_BOLT if find_bolt() is None else STRONGEST)
    missing = missing_programs()
    try:
        compiler = find_compiler(AUTO, profile, None, missing)
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
    """Return the advice on a build.

    None means that one is in use already, or that none was requested.
    """
    used = conditions.installation
    if used is None or plan.server is not None or Layer.COMPILER not in layers:
        return None
    prefix = used.bin_directory.resolve().parent
    if any(one.resolve() == prefix for one, _ in optimised_builds(workspace())):
        return None
    return BuildAdvice(f"pgdyno build --source {_source(used)}", BUILD_MINUTES, BUILD_GAIN, missing())


def make_build(
    conditions: Conditions,
    progress: Progress,
    known: Collection[KnownBuild] | None = None,
    make: Callable[[BuildRequest, Progress], object] = build,
) -> None:
    """Make a verified build of the same major version, unless there is one that is not older.

    ``known`` are those that there are; None: look.

    Raises: InstallationError naming what is missing; what building raises; InterruptedByUserError.
    """
    used = conditions.installation
    if used is None:
        return
    found = builds_to_choose(conditions) or () if known is None else known
    if any(_could_run(one, used) for one in found):
        return
    try:
        make(BuildRequest(_source(used), AUTO, AUTO), progress)
    except KeyboardInterrupt as interrupt:
        raise InterruptedByUserError("interrupted", hint=_GOES_ON) from interrupt


def _could_run(known: KnownBuild, used: Installation) -> bool:
    """Whether a plan may choose a build: the same major version, and no older release."""
    release = tuple(int(part) for part in used.version.split(".") if part.isdigit())
    return known.major == used.major and known.release >= release


def _source(installation: Installation) -> str:
    return f"debian:{installation.major}"
