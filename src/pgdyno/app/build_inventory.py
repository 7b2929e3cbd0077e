"""The use cases ``build list``, ``diff``, ``verify`` and ``remove``: what pgdyno build has made."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from signal import SIGTERM

from pgdyno.app.build_directory import BuildDirectory
from pgdyno.app.fetch import Fetched, fetch
from pgdyno.app.reference import find_reference, is_plain
from pgdyno.app.servers import remove_server
from pgdyno.app.time_left import TimeLeft
from pgdyno.app.verification import Subject, verify
from pgdyno.app.wiring import workspace
from pgdyno.model.build import PLAIN
from pgdyno.model.document import to_document
from pgdyno.model.errors import InstallationError, UsageError
from pgdyno.model.facts import Unknown
from pgdyno.model.ports import Progress
from pgdyno.server.installation import Installation, installation_at
from pgdyno.server.registry import registered_servers
from pgdyno.server.workspace import Workspace
from pgdyno.store.files import write_whole
from pgdyno.toolchain.build_plan import ALWAYS
from pgdyno.toolchain.making import Making
from pgdyno.toolchain.manifest import FILE, Manifest, Verified, dump_manifest, read_manifest
from pgdyno.toolchain.publishing import hidden
from pgdyno.toolchain.regression import TEST_DIRECTORIES
from pgdyno.toolchain.stages import Watch

_COMPILING_SHARE = 0.2  # measured: of a verification, configuring and compiling the tests
_IS_NAME = re.compile(r"built-[0-9a-f]{12}")
_OF_EVERY_BUILD = ("name", "build_s", "installed_at", "verified")  # differ between any two


@dataclass(frozen=True)
class ListedBuild:
    """A build and where it is."""

    manifest: Manifest
    prefix: str


@dataclass(frozen=True)
class Difference:
    """One thing in which two builds differ; a value of None is not there."""

    what: str  # optimised.profile
    first: object
    second: object


def list_builds() -> list[ListedBuild]:
    """Return what pgdyno build has made, the newest first."""
    return [ListedBuild(manifest, str(prefix)) for prefix, manifest in _builds(workspace())]


def diff_builds(first: str, second: str) -> list[Difference]:
    """Return in what two builds differ, by their manifests. Raises: UsageError for a name that is none."""
    place = workspace()
    one, other = (dict(_leaves(to_document(_find(name, place)[1]))) for name in (first, second))
    return [
        Difference(what, one.get(what), other.get(what))
        for what in dict.fromkeys([*one, *other])
        if one.get(what) != other.get(what) and what.partition(".")[0] not in _OF_EVERY_BUILD
    ]


def remove_build(name: str) -> Path:
    """Remove a build, also one that is not finished, and return where it was.

    Raises: UsageError for a name that is none; RefusedError while it runs.
    """
    place = workspace()
    unfinished = place.builds() / name
    if _IS_NAME.fullmatch(name) and unfinished.is_dir():
        shutil.rmtree(hidden(place.servers() / name), ignore_errors=True)
        shutil.rmtree(unfinished)
        return unfinished
    return remove_server(_find(name, place)[1].name)


def verify_build(name: str, progress: Progress) -> ListedBuild:
    """Try a build again as it was tried before it was installed, and write down how that went.

    Its tests are compiled anew from its source. One that fails is not taken into plans any more.
    Raises: UsageError for a name that is none; InstallationError for a source that has changed since, a plain
    build that is missing, and the first thing that is not as it should be; errors of servers.
    """
    place = workspace()
    prefix, manifest = _find(name, place)
    assert manifest.optimised is not None  # noqa: S101 — else it would not have been found
    fetched = fetch(manifest.optimised.source, place, progress)
    if fetched.sha256 != manifest.tarball_sha256:
        raise InstallationError(
            f'the source of {name}, "{manifest.optimised.source}", is another now',
            detail=f"PostgreSQL {fetched.version}, sha256 {fetched.sha256}; "
            f"it was {manifest.server_version}, {manifest.tarball_sha256}",
            hint="build again from what there is now",
        )
    reference = None if is_plain(manifest) else _reference(manifest, place)
    at = BuildDirectory(place.builds() / f"verify-{manifest.name}", prefix, place.account)
    again = _Again(place, manifest, reference, at, progress)
    with place.measuring():
        try:
            verified = again.run(fetched)
        except InstallationError:
            _write(prefix, replace(manifest, verified=None))
            raise
    _write(prefix, replace(manifest, verified=verified))
    shutil.rmtree(at.root)
    return ListedBuild(replace(manifest, verified=verified), str(prefix))


@dataclass(frozen=True)
class _Again:
    """A verification of what is installed already."""

    place: Workspace
    manifest: Manifest
    reference: Installation | None
    at: BuildDirectory
    progress: Progress

    def run(self, fetched: Fetched) -> Verified:
        """Compile the tests of a source, and try everything."""
        time_left = TimeLeft(self.progress, 0.0)
        making = self._tests(fetched, lambda share: time_left.tell(_COMPILING_SHARE * share))
        tested = installation_at(self.at.prefix / "bin", self.place.account, self.manifest.name)
        subject = Subject(tested, self.reference, making, ALWAYS, self.manifest.extensions)
        rest = 1 - _COMPILING_SHARE
        return verify(
            subject,
            self.place,
            self.progress,
            lambda share: time_left.tell(_COMPILING_SHARE + rest * share),
        )

    def _tests(self, fetched: Fetched, watch: Watch) -> Making:
        at, title = self.at, f"PostgreSQL {fetched.version}"
        shutil.rmtree(at.root, ignore_errors=True)
        at.root.mkdir(mode=0o755)
        self.progress.step("compiling the tests")
        fetched.unpack(at.source)
        at.give(at.source)
        making = Making(at.source, at.log, title, partial(self.place.account.command, death_signal=SIGTERM))
        making.configure((f"--prefix={at.prefix}", *self.manifest.configure), lambda _: None)
        making.build(TEST_DIRECTORIES, ALWAYS, watch)
        return making


def _reference(manifest: Manifest, place: Workspace) -> Installation:
    assert manifest.optimised is not None  # noqa: S101 — else it is no build
    found = find_reference(manifest.tarball_sha256, manifest.configure, place)
    if found is None:
        raise InstallationError(
            f"there is no plain build to hold {manifest.name} against",
            detail=f"of PostgreSQL {manifest.server_version} from the same source, with the same libraries",
            hint=f"pgdyno build --source {manifest.optimised.source} --profile {PLAIN} makes one",
        )
    return found


def _write(prefix: Path, manifest: Manifest) -> None:
    """Write a manifest anew; the prefix stays as old as it is, because the newest one is called built."""
    was = prefix.stat()
    write_whole(prefix / FILE, dump_manifest(manifest).encode())
    os.utime(prefix, ns=(was.st_atime_ns, was.st_mtime_ns))


def _builds(place: Workspace) -> Iterator[tuple[Path, Manifest]]:
    prefixes = [server.bin_directory.parent for server in registered_servers(place)]
    for prefix in dict.fromkeys(prefixes):
        manifest = read_manifest(prefix).value
        if not isinstance(manifest, Unknown) and manifest.optimised is not None:
            yield prefix, manifest


def _find(name: str, place: Workspace) -> tuple[Path, Manifest]:
    builds = {manifest.name: (prefix, manifest) for prefix, manifest in _builds(place)}
    if name == "built" and builds:
        return next(iter(builds.values()))
    if name not in builds:
        raise UsageError(
            f'there is no build "{name}"',
            detail=f"there are: {', '.join(builds) or 'none'}",
            hint="pgdyno build list shows them",
        )
    return builds[name]


def _leaves(document: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the members of a document by their dotted names; lists count as one value."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    else:
        yield path, document
