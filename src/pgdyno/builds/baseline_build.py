"""Find the baseline build to verify an optimised build against: the same source with default flags."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from pgdyno.builds.built_servers import built_servers
from pgdyno.builds.product.manifest import Manifest
from pgdyno.builds.spec.configure_options import DEFAULT_CFLAGS, LIBURING, STRICT
from pgdyno.model.plans.recipe import PLAIN
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.workspace import Workspace

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
