"""The use case ``server install``: build the distribution's source packages.

All of them are built with equal flags, as the servers' account.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.builds.compiling.publishing import hidden, publish, stage_copy
from pgdyno.builds.compiling.source_build import Built, SourceBuild
from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import downloads, fetch_packages
from pgdyno.builds.needs.prerequisites import compiler_version, find_options
from pgdyno.builds.product.manifest import FILE, Manifest, dump_manifest, read_manifest
from pgdyno.builds.source.source_package import UNPACKED, SourcePackage, unpack
from pgdyno.builds.spec.configure_options import ConfigureOptions
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace

_NEEDED_BYTES = 512 << 20  # to build one version at a time; measured: 210 MB
_KEPT_BYTES = 150 << 20  # measured: of each version, 36 MB installed, 22 MB of sources, 40 MB of indexes


@dataclass(frozen=True)
class InstallRequest:
    """A request to install servers."""

    majors: tuple[int, ...]
    cflags: str
    wants_liburing: bool


@dataclass(frozen=True)
class InstallParts:
    """Functions that use the host or the network, in the order of their calls; tests replace them."""

    find_options: Callable[..., ConfigureOptions] = find_options
    fetch_packages: Callable[[Workspace, Sequence[int], Progress], dict[int, SourcePackage]] = fetch_packages
    unpack: Callable[[SourcePackage, Path, Path], None] = unpack
    compiler_version: Callable[[str], str] = compiler_version


PARTS = InstallParts()


def install_from_source(
    request: InstallRequest, progress: Progress, parts: InstallParts = PARTS
) -> list[Manifest]:
    """Build the versions that are not installed yet, all with the same options, and return all manifests.

    Raises: UsageError for an impossible request; InstallationError for a prerequisite or source that is
    missing, for a failed step, and for a version installed with other options; StorageError if the disk is
    too small; LockHeldError while another pgdyno measures here.
    """
    place = workspace()
    options = parts.find_options(request.majors, request.cflags, wants_liburing=request.wants_liburing)
    for sentence in options.left_out:
        progress.step(sentence)
    present = {major: found for major in request.majors if (found := _present(place, major, options))}
    for manifest in present.values():
        progress.step(f"{manifest.name} is already installed: PostgreSQL {manifest.server_version}")
    missing = [major for major in request.majors if major not in present]
    if missing:
        place.require_free(
            _NEEDED_BYTES + len(missing) * _KEPT_BYTES,
            "building PostgreSQL",
            "remove something, or set PGDYNO_HOME to a directory on a larger disk",
        )
        packages = parts.fetch_packages(place, missing, progress)
        installing = _Installing(place, options, progress, parts, TimeLeft(progress), len(missing))
        present |= installing.all(packages)
    return [present[major] for major in request.majors]


def _name(major: int) -> str:
    return f"source-{major}"


def _present(place: Workspace, major: int, options: ConfigureOptions) -> Manifest | None:
    """Return the manifest of an installed version. Raises: InstallationError for other options."""
    prefix = place.servers() / _name(major)
    if not prefix.exists():
        return None
    found = read_manifest(prefix).value
    if isinstance(found, Unknown):
        detail = f"its manifest: {found.reason}"
    elif found.configure == options.arguments(major):
        return found
    else:
        requested = " ".join(options.arguments(major))
        detail = f"it has {' '.join(found.configure)}\n         now requested: {requested}"
    raise InstallationError(
        f"{_name(major)} is already installed with other options",
        detail=detail,
        hint=f"remove it with pgdyno server remove {_name(major)}, then install it again",
    )


@dataclass
class _Installing:
    """Builds one version at a time and reports the time left."""

    place: Workspace
    options: ConfigureOptions
    progress: Progress
    parts: InstallParts
    time_left: TimeLeft
    count: int
    done: int = 0

    def all(self, packages: dict[int, SourcePackage]) -> dict[int, Manifest]:
        """Build and install, under the measurement lock: a build and a measurement disturb each other."""
        manifests = {}
        with self.place.measuring():
            for major, package in packages.items():
                self.progress.step(f"building {_name(major)}: {package.name} {package.version}")
                with self.place.scratch() as scratch:
                    manifests[major] = self._install(major, package, scratch)
                self.done += 1
        return manifests

    def _install(self, major: int, package: SourcePackage, root: Path) -> Manifest:
        account = self.place.account
        at = BuildDirectory(root, self.place.servers() / _name(major), account)
        self.parts.unpack(package, downloads(self.place), at.source)
        at.give(at.source)
        log = self.place.builds() / f"{at.prefix.name}.log"
        build = SourceBuild(major, at.source, self.options, at.prefix, log, account.run_as)
        try:
            built = build.run(at.empty("built"), self._report)
            placed = stage_copy(at.prefix, built.staged, account.run_as)
            installation_at(placed / "bin", account)  # raises unless the account can run it
            manifest = self._manifest(package, built, major)
            publish(at.prefix, (FILE, dump_manifest(manifest)))
        finally:
            shutil.rmtree(hidden(at.prefix), ignore_errors=True)
        return manifest

    def _report(self, share: float) -> None:
        self.time_left.report((self.done + share) / self.count)

    def _manifest(self, package: SourcePackage, built: Built, major: int) -> Manifest:
        return Manifest(
            name=_name(major),
            server_version=built.server_version,
            package=package.name,
            package_version=package.version,
            suite=package.suite,
            tarball=package.tarball.name,
            tarball_sha256=package.tarball.sha256,
            unpacked=UNPACKED,
            compiler=self.parts.compiler_version(self.options.compiler),
            configure=self.options.arguments(major),
            cflags=built.cflags,
            extensions=self.options.extensions,
            notes=self.options.notes(major),
            build_s=round(built.build_s, 1),
            installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
