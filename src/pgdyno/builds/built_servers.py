"""Servers built by pgdyno, with their manifests.

A plan may choose among the verified and hardened ones, newest first.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile
from pathlib import Path

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.builds.product.debian_package import package_name
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.builds.spec.configure_options import DEFAULT_CFLAGS, LIBURING, STRICT
from pgdyno.host.architecture import is_foreign
from pgdyno.model.plans.recipe import PATCHED, PLAIN, UNHARDENED, KnownBuild
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.registry import NEWEST, find_installation, is_packaged, registered_servers
from pgdyno.postgres.process.workspace import Workspace

_RELEASE = re.compile(r"\d+\.\d+")


def built_servers(place: Workspace) -> Iterator[tuple[Path, Manifest]]:
    """Yield prefix and manifest of every server that pgdyno built; optimised builds newest first."""
    for server in registered_servers(place):
        prefix = server.bin_directory.parent
        manifest = read_manifest(prefix).value
        if server.name != NEWEST and not isinstance(manifest, Unknown):
            yield prefix, manifest


def optimised_builds(place: Workspace) -> Iterator[tuple[Path, Manifest]]:
    """Yield prefix and manifest of every build made by ``pgdyno build``, newest first."""
    return ((prefix, manifest) for prefix, manifest in built_servers(place) if manifest.optimised is not None)


def find_build(name: str, place: Workspace) -> tuple[Path, Manifest]:
    """Return prefix and manifest of a build; the name ``built`` means the newest one for this machine.

    Raises: UsageError for an unknown name.
    """
    builds = {manifest.name: (prefix, manifest) for prefix, manifest in optimised_builds(place)}
    if name == NEWEST:
        name = next((one.name for _, one in builds.values() if not is_foreign(one.machine)), name)
    if name not in builds:
        raise UsageError(
            f'build "{name}" does not exist',
            detail=f"existing builds: {', '.join(builds) or 'none'}",
            hint="pgdyno build list shows them",
        )
    return builds[name]


def require_not_packaged(prefix: Path, manifest: Manifest) -> None:
    """Raise RefusedError for a build that a package installed."""
    if is_packaged(prefix):
        raise RefusedError(
            f"{manifest.name} belongs to a package",
            detail=f"{prefix} is managed by dpkg",
            hint=f"apt-get remove {package_name(manifest)} removes it",
        )


def known_builds(place: Workspace, in_use: Path, *, accepts_patches: bool = False) -> tuple[KnownBuild, ...]:
    """Return the optimised builds newer than the one with the bin directory ``in_use``.

    All of them if ``in_use`` is no build. ``accepts_patches``: include builds of patched sources.
    """
    excluded_parts = {UNHARDENED} if accepts_patches else {UNHARDENED, PATCHED}
    builds = optimised_builds(place)
    newer = takewhile(lambda build: build[0].resolve() != in_use.resolve().parent, builds)
    return tuple(known for _, manifest in newer if (known := _known(manifest, excluded_parts)) is not None)


def _known(manifest: Manifest, excluded_parts: AbstractSet[str]) -> KnownBuild | None:
    """Return an optimised, verified build for this machine with no excluded part in its recipe, or None."""
    if manifest.optimised is None or manifest.verified is None:
        return None
    if is_foreign(manifest.machine) or manifest.verified.is_emulated:  # never run on its own machine
        return None
    if not manifest.verified.reference:  # a baseline build
        return None
    if excluded_parts & {*manifest.optimised.recipe.split("+")}:
        return None
    if not _RELEASE.fullmatch(manifest.server_version):  # other versions may be unable to read its data
        return None
    return KnownBuild(
        name=manifest.name,
        version=manifest.server_version,
        compiler=manifest.compiler,
        recipe=manifest.optimised.recipe,
        training=tuple(one.workload for one in manifest.optimised.training),
        tests=sum(suite.tests for suite in manifest.verified.suites),
    )


_CONTRACTS_NOTHING = frozenset({"x86_64"})
"""Architectures without fused multiply-add in the base instruction set: compilers do not contract there."""


def find_baseline_build(source_sha256: str, options: Sequence[str], place: Workspace) -> Installation | None:
    """Return a plain build of a source with the libraries that these configure options name, or None.

    Raises: ServerError if it does not run.
    """
    for _, manifest in built_servers(place):
        is_same = manifest.tarball_sha256 == source_sha256 and _features(manifest.configure) == _features(
            options
        )
        has_failed = manifest.optimised is not None and manifest.verified is None
        if is_same and is_plain(manifest) and not has_failed:
            return find_installation(manifest.name, place)
    return None


def _features(options: Sequence[str]) -> set[str]:
    """Return the options that data and results may depend on, such as compression and collation libraries.

    They include --host: a build for another machine is compared with one for the same machine.
    They exclude liburing: it adds another way to wait for the same pages, used only if io_method is set.
    A server made by ``server install`` is therefore a valid reference with or without it.
    """
    return {option for option in options if option.startswith("--")} - {STRICT, LIBURING.option}


def is_plain(manifest: Manifest) -> bool:
    """Whether a server was built with default flags, for every CPU of the architecture."""
    if manifest.optimised is not None:
        return manifest.optimised.recipe == PLAIN and manifest.optimised.target is None
    return manifest.flags == DEFAULT_CFLAGS and platform.machine() in _CONTRACTS_NOTHING
