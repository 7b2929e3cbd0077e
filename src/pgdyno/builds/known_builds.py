"""Builds that a plan may choose from: verified and hardened ones, the newest first."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from itertools import takewhile
from pathlib import Path

from pgdyno.builds.built_servers import optimised_builds
from pgdyno.builds.product.manifest import Manifest
from pgdyno.host.architecture import is_foreign
from pgdyno.measure.conditions import Conditions
from pgdyno.model.plans.builds import KnownBuild
from pgdyno.model.plans.recipe import PATCHED, UNHARDENED
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace

_RELEASE = re.compile(r"\d+\.\d+")


def builds_to_choose(conditions: Conditions) -> tuple[KnownBuild, ...] | None:
    """Return the builds that scratch servers could run instead.

    None means that the present installation is unknown.
    """
    if conditions.installation is None:
        return None
    return known_builds(
        workspace(), conditions.installation.bin_directory, accepts_patches=conditions.accepts_patches
    )


def known_builds(place: Workspace, in_use: Path, *, accepts_patches: bool = False) -> tuple[KnownBuild, ...]:
    """Return the optimised builds that are newer than the one whose programs are ``in_use``, if it is one.

    ``accepts_patches``: those of a source that pgdyno has patched as well.
    """
    for_the_asking = {UNHARDENED} if accepts_patches else {UNHARDENED, PATCHED}
    builds = optimised_builds(place)
    newer = takewhile(lambda build: build[0].resolve() != in_use.resolve().parent, builds)
    return tuple(known for _, manifest in newer if (known := _known(manifest, for_the_asking)) is not None)


def _known(manifest: Manifest, for_the_asking: AbstractSet[str]) -> KnownBuild | None:
    """Return a build whose manifest says that it is more than plain, and verified."""
    if manifest.optimised is None or manifest.verified is None:
        return None
    if is_foreign(manifest.machine) or manifest.verified.is_emulated:  # nobody has seen it on its machine
        return None
    if not manifest.verified.reference:  # it is what others are held against
        return None
    if for_the_asking & {*manifest.optimised.recipe.split("+")}:
        return None
    if not _RELEASE.fullmatch(manifest.server_version):  # whose data no other version may be able to read
        return None
    return KnownBuild(
        name=manifest.name,
        version=manifest.server_version,
        compiler=manifest.compiler,
        recipe=manifest.optimised.recipe,
        training=tuple(one.workload for one in manifest.optimised.training),
        tests=sum(suite.tests for suite in manifest.verified.suites),
    )
