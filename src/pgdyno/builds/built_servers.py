"""Servers built by pgdyno, with their manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.builds.product.debian_package import package_name
from pgdyno.builds.product.manifest import Manifest, read_manifest
from pgdyno.host.architecture import is_foreign
from pgdyno.postgres.process.registry import NEWEST, is_packaged, registered_servers
from pgdyno.postgres.process.workspace import Workspace


def built_servers(place: Workspace) -> Iterator[tuple[Path, Manifest]]:
    """Yield prefix and manifest of every server that pgdyno has built; its builds, the newest first."""
    for server in registered_servers(place):
        prefix = server.bin_directory.parent
        manifest = read_manifest(prefix).value
        if server.name != NEWEST and not isinstance(manifest, Unknown):
            yield prefix, manifest


def optimised_builds(place: Workspace) -> Iterator[tuple[Path, Manifest]]:
    """Yield those that pgdyno build has made."""
    return ((prefix, manifest) for prefix, manifest in built_servers(place) if manifest.optimised is not None)


def find_build(name: str, place: Workspace) -> tuple[Path, Manifest]:
    """Return the build of that name; ``built``: the newest one for this machine.

    Raises: UsageError for a name that is none.
    """
    builds = {manifest.name: (prefix, manifest) for prefix, manifest in optimised_builds(place)}
    if name == NEWEST:
        name = next((one.name for _, one in builds.values() if not is_foreign(one.machine)), name)
    if name not in builds:
        raise UsageError(
            f'there is no build "{name}"',
            detail=f"there are: {', '.join(builds) or 'none'}",
            hint="pgdyno build list shows them",
        )
    return builds[name]


def require_ours(prefix: Path, manifest: Manifest) -> None:
    """Raise RefusedError for a build that a package has brought."""
    if is_packaged(prefix):
        raise RefusedError(
            f"{manifest.name} belongs to a package",
            detail=f"what is in {prefix} is for dpkg to change and remove",
            hint=f"apt-get remove {package_name(manifest)} removes it",
        )
