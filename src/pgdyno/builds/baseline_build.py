"""Find the baseline build to verify optimised builds against.

It is of the same source, with default flags.
"""

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
"""Where CPUs of the oldest kind cannot contract a product with a sum, so that compilers do not by default."""


def find_baseline_build(source_sha256: str, options: Sequence[str], place: Workspace) -> Installation | None:
    """Return a plain build of a source with the libraries that these arguments of configure name; None: none.

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
    """Return the options that data and answers may depend on: compressed by a library, or sorted.

    --host is one of them, so that builds for another machine are held against one for the same.
    liburing is none of them: it only offers another way to wait for the same pages, which nobody uses
    who does not set io_method. So servers of ``server install`` serve as a reference with and without it.
    """
    return {option for option in options if option.startswith("--")} - {STRICT, LIBURING.option}


def is_plain(manifest: Manifest) -> bool:
    """Whether a server was built with everyday flags, for every CPU of the architecture."""
    if manifest.optimised is not None:
        return manifest.optimised.recipe == PLAIN and manifest.optimised.target is None
    return manifest.flags == DEFAULT_CFLAGS and platform.machine() in _CONTRACTS_NOTHING
