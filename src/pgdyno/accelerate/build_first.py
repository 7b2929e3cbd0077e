"""Make a build for the compiler's layer of ``accelerate``, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pgdyno.accelerate.build_advice import source_of
from pgdyno.base.errors import InterruptedByUserError
from pgdyno.base.ports import Progress
from pgdyno.builds.build import build
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.known_builds import builds_to_choose
from pgdyno.measure.conditions import Conditions
from pgdyno.model.plans.builds import KnownBuild
from pgdyno.model.plans.recipe import AUTO
from pgdyno.postgres.process.installation import Installation

_GOES_ON = "finished stages are kept: the same command resumes at the interrupted stage"


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
        make(BuildRequest(source_of(used), AUTO, AUTO), progress)
    except KeyboardInterrupt as interrupt:
        raise InterruptedByUserError("interrupted", hint=_GOES_ON) from interrupt


def _could_run(known: KnownBuild, used: Installation) -> bool:
    """Whether a plan may choose a build: the same major version, and no older release."""
    release = tuple(int(part) for part in used.version.split(".") if part.isdigit())
    return known.major == used.major and known.release >= release
