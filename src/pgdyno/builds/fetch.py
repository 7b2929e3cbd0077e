"""Obtain a build's source: fetch and check a package, or take a tarball or tree."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pgdyno.base.errors import InstallationError, StorageError
from pgdyno.base.ports import Progress
from pgdyno.builds.source.apt_sources import host_repositories, source_suites
from pgdyno.builds.source.private_apt import open_suites
from pgdyno.builds.source.source import (
    NOT_SOURCE,
    Package,
    Tarball,
    Tree,
    checksum,
    copy_tree,
    major_of,
    parse_source,
    read_version,
)
from pgdyno.builds.source.source_package import (
    UNPACKED,
    SourcePackage,
    choose_suites,
    describe_package,
    unpack,
    unpack_tarball,
    version_in_tarball,
)
from pgdyno.host.files.source_tree import opened_tree, plain_file
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import write_whole

_REFRESHED_AFTER_S = 86_400.0
_PACKAGES = TypeAdapter(SourcePackage)
_COPIED = "copied from a directory, without version control files"


@dataclass(frozen=True)
class Fetched:
    """A fetched source. ``unpack`` makes a tree of it; ``package`` None: it is not from an apt archive."""

    asked: str
    sha256: str
    version: str  # 18.6
    how: str
    unpack: Callable[[Path], None]
    package: SourcePackage | None = None
    tarball: str = ""

    @property
    def major(self) -> int:
        """The major version."""
        return major_of(self.version)


def fetch(asked: str, place: Workspace, progress: Progress) -> Fetched:
    """Return the requested source.

    Raises: UsageError, RefusedError for an invalid or unsupported source; InstallationError; StorageError if
    its version cannot be stored.
    """
    source = parse_source(asked, opened_tree)
    if isinstance(source, Package):
        package = _package(place, source.major, progress)
        return Fetched(
            asked=asked,
            sha256=package.tarball.sha256,
            version=package.upstream_version,
            how=UNPACKED,
            unpack=partial(unpack, package, downloads(place)),
            package=package,
            tarball=package.tarball.name,
        )
    if isinstance(source, Tarball):
        with _private_copy(place, source) as (copy, digest):
            version = _version(place, copy, digest, source.path)
        return Fetched(
            asked=asked,
            sha256=digest,
            version=version,
            how=UNPACKED,
            unpack=partial(_unpack, place, source, digest),
            tarball=source.path.name,
        )
    with opened_tree(source.path) as tree:
        version, digest = read_version(tree, source.path), checksum(tree.files(NOT_SOURCE))
    return Fetched(asked, digest, version, _COPIED, partial(_copy, source, digest))


def fetch_packages(place: Workspace, majors: Sequence[int], progress: Progress) -> dict[int, SourcePackage]:
    """Download the source packages that are not downloaded yet, and return them by major version."""
    progress.step("looking for source packages in the distribution's archive")
    suites = open_suites(source_suites(host_repositories()), place.builds() / "apt")
    packages = {}
    for major, suite in choose_suites(majors, suites).items():
        package = describe_package(suite, major)
        progress.step(f"downloading {package.name} {package.version} from {package.suite}")
        suite.download(major, downloads(place))
        packages[major] = package
    return packages


def downloads(place: Workspace) -> Path:
    """Return the directory of downloaded source packages."""
    return place.builds() / "sources"


def _package(place: Workspace, major: int, progress: Progress) -> SourcePackage:
    """Return a downloaded source package. The archive is queried once a day: a query takes seconds."""
    answer = place.builds() / f"package-{major}.json"
    if answer.is_file() and time.time() - answer.stat().st_mtime < _REFRESHED_AFTER_S:
        with suppress(ValidationError):  # written by another version of pgdyno
            package = _PACKAGES.validate_json(answer.read_bytes())
            if (downloads(place) / package.tarball.name).is_file():
                return package
    package = fetch_packages(place, [major], progress)[major]
    write_whole(answer, _PACKAGES.dump_json(package))
    return package


@contextmanager
def _private_copy(place: Workspace, tarball: Tarball) -> Iterator[tuple[Path, str]]:
    """Provide a copy that no other account can replace, and its checksum.

    Raises: StorageError, RefusedError.
    """
    with tempfile.TemporaryDirectory(prefix="source-", dir=place.builds()) as directory:
        copy = Path(directory) / tarball.path.name
        yield copy, _copied(tarball.path, copy)


def _copied(source: Path, target: Path) -> str:
    """Copy a file and return its checksum."""
    digest = hashlib.sha256()
    try:
        with target.open("wb") as copy:
            for chunk in plain_file(source):
                copy.write(chunk)
                digest.update(chunk)
    except OSError as error:
        raise StorageError(f'could not write "{target}"', detail=error.strerror or str(error)) from error
    return digest.hexdigest()


def _version(place: Workspace, tarball: Path, digest: str, original: Path) -> str:
    """Return a tarball's version. It is read from the tarball once, then cached: reading takes seconds."""
    known = place.builds() / f"version-{digest}"
    if not known.exists():
        write_whole(known, version_in_tarball(tarball, original).encode())
    return known.read_text()


def changed(source: str) -> InstallationError:
    """Return the error for a source that has changed since it was read."""
    return InstallationError(
        f'the source "{source}" changed during the build',
        detail="the build would not match its name",
        hint="build again, and do not change the source until the build ends",
    )


def _unpack(place: Workspace, tarball: Tarball, digest: str, target: Path) -> None:
    with _private_copy(place, tarball) as (copy, found):
        if found != digest:
            raise changed(str(tarball.path))
        unpack_tarball(copy, target)


def _copy(tree: Tree, digest: str, target: Path) -> None:
    with opened_tree(tree.path) as found:
        copied = copy_tree(found, target)
    if copied != digest:
        raise changed(str(tree.path))
