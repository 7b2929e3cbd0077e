"""The use cases ``server list`` and ``server remove``, and ``build list``, ``diff`` and ``remove``."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.apply.ledger.log import read_journal
from pgdyno.base.errors import RefusedError, ServerError, UsageError
from pgdyno.base.facts import Fact, to_document
from pgdyno.builds.built_servers import built_servers, find_build, optimised_builds, require_not_packaged
from pgdyno.builds.compiling.build_plan import NAME
from pgdyno.builds.compiling.publishing import hidden
from pgdyno.builds.product.manifest import FILE, Manifest, read_manifest
from pgdyno.model.plans.plan import PROGRAM_KINDS
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import running_from
from pgdyno.postgres.process.registry import RegisteredServer, is_packaged, registered_servers


@dataclass(frozen=True)
class ListedServer:
    """One line of the list; ``failure``: why its programs do not run, for example a wrong architecture."""

    name: str
    version: str | None
    bin_directory: str
    manifest: Fact[Manifest]  # unknown: pgdyno has not built it
    failure: str | None = None


def list_servers() -> list[ListedServer]:
    """Return every registered server, including those that cannot run."""
    return [_listed(server) for server in registered_servers(workspace())]


def _listed(server: RegisteredServer) -> ListedServer:
    place, manifest = str(server.bin_directory), read_manifest(server.bin_directory.parent)
    try:
        version = installation_at(server.bin_directory, workspace().account).version
    except ServerError as error:
        return ListedServer(server.name, None, place, manifest, error.detail or error.message)
    return ListedServer(server.name, version, place, manifest)


def _require_not_chosen(name: str, prefix: Path) -> None:
    """Raise RefusedError for programs that a stopped server was switched to, or from."""
    for receipt in read_journal(workspace().root / "journal").open:
        if receipt.change.kind not in PROGRAM_KINDS:
            continue
        if any(f"{prefix}/" in f"{text}/" for text in (receipt.change.value, receipt.change.current or "")):
            raise RefusedError(
                f'server "{name}" is needed',
                detail=f"{receipt.target.address} was switched to it, or from it ({receipt.apply_id})",
                hint="pgdyno revert first; pgdyno status shows all other applied changes",
            )


def remove_server(name: str) -> Path:
    """Remove a server that pgdyno built, and return its former prefix.

    Raises: UsageError for any other name; RefusedError while it runs or an applied change needs it, or if a
    package installed it.
    """
    servers = workspace().servers()
    built = {path.parent.name: path.parent for path in sorted(servers.glob(f"*/{FILE}"))}
    prefix = built.get(name)
    if prefix is None:
        _require_no_package(name)
        raise UsageError(
            f'pgdyno has not built a server "{name}"',
            detail=f"built: {', '.join(built) or 'none'}",
            hint="pgdyno server list shows all known servers; remove others the way they were installed",
        )
    if pids := running_from(prefix):
        raise RefusedError(
            f'server "{name}" is in use',
            detail=f"running processes: {', '.join(map(str, pids))}",
            hint="stop it first",
        )
    _require_not_chosen(name, prefix)
    # Renamed first: an interrupted removal leaves no partial server under this name.
    doomed = servers / f".{name}.removed"
    shutil.rmtree(doomed, ignore_errors=True)
    prefix.rename(doomed)
    shutil.rmtree(doomed)
    return prefix


def _require_no_package(name: str) -> None:
    for prefix, manifest in built_servers(workspace()):
        if manifest.name == name:
            require_not_packaged(prefix, manifest)


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
