"""The use case ``build verify``: verify an installed build again, with newly compiled tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from pgdyno.base.errors import InstallationError
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.builds.built_servers import find_baseline_build, find_build, is_plain
from pgdyno.builds.compiling.build_plan import ALWAYS
from pgdyno.builds.compiling.regression import TEST_DIRECTORIES, with_tests
from pgdyno.builds.directory import BuildDirectory
from pgdyno.builds.fetch import Fetched, fetch
from pgdyno.builds.make import Making, Watch, share_of_all
from pgdyno.builds.needs.prerequisites import Need, missing_error, missing_programs
from pgdyno.builds.patching.patches import Patch, apply_patches, known_patches
from pgdyno.builds.product.debian_package import package_name
from pgdyno.builds.product.manifest import FILE, Manifest, Verified, dump_manifest
from pgdyno.builds.source.source import major_of
from pgdyno.builds.verifying.verification import SECONDS, Candidate, verify
from pgdyno.host.processes.running import is_installed
from pgdyno.model.plans.recipe import HUGE_TEXT, PLAIN
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import is_packaged
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import write_whole

Verify: TypeAlias = Callable[[Candidate, Workspace, Progress, Watch], Verified]
Fetch: TypeAlias = Callable[[str, Workspace, Progress], Fetched]

_COMPILING_S = 70.0  # expected time to configure and compile the tests


def verify_build(name: str, progress: Progress, verify: Verify = verify, fetch: Fetch = fetch) -> Manifest:
    """Repeat the verification of an installed build, and return its manifest with the result.

    The tests are compiled again from its source. The result is written to the manifest, so that plans no
    longer choose a failed build; the files of a package are not changed.
    Raises: UsageError for an unknown name; InstallationError for missing prerequisites, a changed source, and
    the first failed check; errors of servers.
    """
    place = workspace()
    prefix, manifest = find_build(name, place)
    assert manifest.optimised is not None  # noqa: S101 — find_build returns only these
    # Checked first: the build may be for a foreign machine, and the emulator gone.
    tested = installation_at(prefix / "bin", place.account, manifest.name)
    _require_programs(manifest)
    fetched = fetch(manifest.optimised.source, place, progress)
    if fetched.sha256 != manifest.tarball_sha256:
        raise InstallationError(
            f'the source of {name}, "{manifest.optimised.source}", has changed since the build',
            detail=f"now PostgreSQL {fetched.version}, sha256 {fetched.sha256}; "
            f"it was {manifest.server_version}, {manifest.tarball_sha256}",
            hint="build again from the present source",
        )
    patches = _patches(manifest, fetched.version)
    reference = None if is_plain(manifest) else _reference(manifest, place)
    at = BuildDirectory(place.builds() / f"verify-{manifest.name}", prefix, place.account)
    again = _Again(place, manifest, tested, reference, at, progress, verify)
    with place.measuring():
        making = again.compile_tests(fetched, patches)
        try:
            manifest = replace(manifest, verified=again.run(making))
        except InstallationError:
            _note(prefix, replace(manifest, verified=None), progress)
            raise
    _note(prefix, manifest, progress)
    shutil.rmtree(at.root)
    return manifest


@dataclass(frozen=True)
class _Again:
    """A verification of an installed build."""

    place: Workspace
    manifest: Manifest
    tested: Installation
    reference: Installation | None
    at: BuildDirectory
    progress: Progress
    verify: Verify

    def compile_tests(self, fetched: Fetched, patches: Sequence[Patch]) -> Making:
        """Compile the tests. Raises: InstallationError, which is no result for the build."""
        at, title = self.at, f"PostgreSQL {fetched.version}"
        shutil.rmtree(at.root, ignore_errors=True)
        at.root.mkdir(mode=0o755)
        self.progress.step("compiling the tests")
        fetched.unpack(at.source)
        apply_patches(patches, at.source, fetched.version)
        at.give(at.source)
        making = Making(at.source, at.log, title, self.place.account.run_as)
        making.configure((f"--prefix={at.prefix}", *self.manifest.configure), lambda _: None)
        making.build(TEST_DIRECTORIES, ALWAYS, self._watch(0.0, _COMPILING_S))
        return making

    def run(self, making: Making) -> Verified:
        """Run all checks. Raises: InstallationError for the first failed check."""
        modules = with_tests(making, self.manifest.extensions)
        assert self.manifest.optimised is not None  # noqa: S101 — find_build returns only these
        is_on_huge_pages = HUGE_TEXT in self.manifest.optimised.recipe.split("+")
        subject = Candidate(self.tested, self.reference, making, ALWAYS, modules, is_on_huge_pages)
        return self.verify(subject, self.place, self.progress, self._watch(_COMPILING_S, SECONDS))

    @cached_property
    def _time_left(self) -> TimeLeft:
        return TimeLeft(self.progress)

    def _watch(self, passed_s: float, expected_s: float) -> Watch:
        return share_of_all(self._time_left.report, passed_s, expected_s, _COMPILING_S + SECONDS)


def _require_programs(manifest: Manifest) -> None:
    """Raise InstallationError naming the missing programs for compiling tests."""
    compilers = [one.removeprefix("CC=").split()[0] for one in manifest.configure if one.startswith("CC=")]
    missing = [Need(one, one) for one in compilers if not is_installed(one)] + missing_programs()
    if missing:
        raise missing_error(missing)


def _patches(manifest: Manifest, version: str) -> tuple[Patch, ...]:
    """Return the patches of a build. Raises: InstallationError if this pgdyno's patches differ."""
    if manifest.patched is None:
        return ()
    applied = {one.name: one.sha256 for one in manifest.patched.patches}
    here = {patch.name: patch for patch in known_patches() if patch.major == major_of(version)}
    gone = [name for name in applied if name not in here]
    changed = [name for name in applied if name in here and here[name].sha256 != applied[name]]
    if gone or changed:
        since = (("changed since", changed), ("removed since", gone))
        raise InstallationError(
            f"{manifest.name} was built with patches that differ from this pgdyno's",
            detail="; ".join(f"{what}: {', '.join(names)}" for what, names in since if names),
            hint="build again with the present patches",
        )
    return tuple(patch for name, patch in here.items() if name in applied)


def _reference(manifest: Manifest, place: Workspace) -> Installation:
    assert manifest.optimised is not None  # noqa: S101 — find_build returns only these
    found = find_baseline_build(manifest.tarball_sha256, manifest.configure, place)
    if found is None:
        raise InstallationError(
            f"no plain build exists to verify {manifest.name} against",
            detail=f"needed: PostgreSQL {manifest.server_version} from the same source with equal features",
            hint=f"pgdyno build --source {manifest.optimised.source} --recipe {PLAIN} makes one; "
            "add --like if it was used before",
        )
    return found


def _note(prefix: Path, manifest: Manifest, progress: Progress) -> None:
    """Rewrite a manifest, and keep the modification time of its prefix, which determines the newest build.

    A package's manifest is not changed.
    """
    if is_packaged(prefix):
        if manifest.verified is None:
            progress.step(f"plans still choose it until apt-get remove {package_name(manifest)}")
        return  # managed by dpkg
    was = prefix.stat()
    write_whole(prefix / FILE, dump_manifest(manifest).encode())
    os.utime(prefix, ns=(was.st_atime_ns, was.st_mtime_ns))
