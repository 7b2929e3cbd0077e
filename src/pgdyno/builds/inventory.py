"""The use cases ``build list``, ``diff`` and ``remove``, for builds by pgdyno."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.document import to_document
from pgdyno.builds.built_servers import find_build, optimised_builds
from pgdyno.builds.compiling.build_plan import NAME
from pgdyno.builds.compiling.publishing import hidden
from pgdyno.builds.product.manifest import Manifest
from pgdyno.builds.servers import remove_server
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import is_packaged

_IS_NAME = re.compile(r"built-[0-9a-f]{12}")
_OF_EVERY_BUILD = ("name", "build_s", "installed_at", "verified")  # differ between any two


@dataclass(frozen=True)
class ListedBuild:
    """A build and its prefix."""

    manifest: Manifest
    prefix: str
    is_packaged: bool  # installed by a package: managed by dpkg


@dataclass(frozen=True)
class Difference:
    """One difference between two manifests; None: the member is absent."""

    what: str  # optimised.recipe
    first: object
    second: object


def list_builds() -> list[ListedBuild]:
    """Return the builds made by pgdyno, newest first."""
    return [
        ListedBuild(manifest, str(prefix), is_packaged(prefix))
        for prefix, manifest in optimised_builds(workspace())
    ]


def diff_builds(first: str, second: str) -> list[Difference]:
    """Return the differences between two builds' manifests.

    Raises: UsageError for an unknown name.
    """
    place = workspace()
    one, other = (dict(_leaves(_unnamed(find_build(name, place)[1]))) for name in (first, second))
    return [
        Difference(what, one.get(what), other.get(what))
        for what in dict.fromkeys([*one, *other])
        if one.get(what) != other.get(what) and what.partition(".")[0] not in _OF_EVERY_BUILD
    ]


def remove_build(name: str) -> Path:
    """Remove a finished or unfinished build, and return its former path.

    Raises: UsageError for an unknown name; RefusedError while it runs, or if a package installed it.
    """
    place = workspace()
    unfinished = place.builds() / name
    if _IS_NAME.fullmatch(name) and unfinished.is_dir():
        shutil.rmtree(hidden(place.servers() / name), ignore_errors=True)
        shutil.rmtree(unfinished)
        return unfinished
    return remove_server(find_build(name, place)[1].name)


def _unnamed(manifest: Manifest) -> object:
    """Return a manifest's document with its name replaced by built-ID, also in the paths of flags."""
    text = json.dumps(to_document(manifest)).replace(manifest.name, f"{NAME}-ID")
    return json.loads(text)


def _leaves(document: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted names and values of a document's members; a list is one value."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    else:
        yield path, document
