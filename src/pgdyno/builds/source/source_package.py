"""Find PostgreSQL's source packages in suites, and unpack one: the upstream tarball, checked.

Every release of a distribution has one major version (Debian 12 has 15, Debian 13 has 17), so two majors
usually come from two suites. The first suite with a version is used; suites are queried only as needed,
because the index of each has about 12 MB.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source.private_apt import SourceFile
from pgdyno.builds.source.source import version_of
from pgdyno.host.processes.running import capture

UNPACKED = "tar, the upstream tarball alone, without the distribution's patches"
"""One of Debian's patches (50-per-version-dirs) installs libraries into /usr/lib/postgresql whatever the
prefix. Without patches, every version is measured as released."""

_TARBALL = re.compile(r"^postgresql-\d+_(?P<version>[^_]+)\.orig\.tar\.(?:gz|bz2|xz|zst)$")
_DESCRIPTION = re.compile(r"^postgresql-\d+_(?P<version>[^_]+)\.dsc$")
_UNPACK_LIMIT_S = 300.0  # arbitrary; it takes about 5 s
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a FIFO does not block


class SourceSuite(Protocol):
    """Queries to a suite; ``private_apt.py`` implements them."""

    @property
    def suite(self) -> str:
        """The suite's name as requested."""
        ...

    def majors(self) -> tuple[int, ...]:
        """Return the suite's major versions. Raises: InstallationError if its index is not available."""
        ...

    def codename(self) -> str:
        """Return the release's codename."""
        ...

    def files(self, major: int) -> tuple[SourceFile, ...]:
        """Return the files of a source package."""
        ...

    def download(self, major: int, target: Path) -> None:
        """Download a source package."""
        ...


@dataclass(frozen=True)
class SourcePackage:
    """A source package as found in an archive."""

    name: str
    version: str  # the distribution's: 17.11-0+deb13u1
    suite: str  # the release's codename: trixie
    tarball: SourceFile

    @property
    def upstream_version(self) -> str:
        """The upstream version: ``17.11``; 18rc1 for the distribution's 18~rc1."""
        found = _TARBALL.match(self.tarball.name)
        assert found is not None  # noqa: S101 — describe_package chose it by this name
        return found["version"].replace("~", "")


def choose_suites(majors: Sequence[int], suites: Sequence[SourceSuite]) -> dict[int, SourceSuite]:
    """Return for each major the first suite that has it, in the order of ``majors``.

    Raises: InstallationError with the versions of every suite, or why a suite could not be queried. If the
    first suite cannot be queried, the others are not tried: each would wait for the network again.
    """
    chosen: dict[int, SourceSuite] = {}
    answers: list[str] = []
    for suite in suites:
        if set(majors) <= set(chosen):
            break
        try:
            found = suite.majors()
        except InstallationError as error:
            if not answers:
                raise
            answers.append(error.message)
            continue
        answers.append(f"{suite.suite} has {', '.join(map(str, found)) or 'none'}")
        for major in found:
            chosen.setdefault(major, suite)
    missing = [major for major in majors if major not in chosen]
    if missing:
        names = ", ".join(f"postgresql-{major}" for major in missing)
        raise InstallationError(
            f"the archive has no source package {names}",
            detail="\n         ".join(answers),
            hint="choose a version that exists, or name an installed one by its prefix: /opt/pg16@default",
        )
    return {major: chosen[major] for major in majors}


def describe_package(suite: SourceSuite, major: int) -> SourcePackage:
    """Return the entry of a source package in the suite's index."""
    files = suite.files(major)
    tarballs = [file for file in files if _TARBALL.match(file.name)]
    versions = [found["version"] for file in files if (found := _DESCRIPTION.match(file.name))]
    if len(tarballs) != 1 or len(versions) != 1:
        raise InstallationError(
            f'the source package postgresql-{major} of suite "{suite.suite}" has an unexpected structure',
            detail=f"its files: {', '.join(file.name for file in files)}",
        )
    return SourcePackage(f"postgresql-{major}", versions[0], suite.codename(), tarballs[0])


def unpack(package: SourcePackage, downloads: Path, tree: Path) -> None:
    """Check the upstream tarball again, create ``tree`` and unpack the tarball into it.

    The file is read only once: apt's user owns the directory, and could replace the file after the check.
    Raises: InstallationError for a tarball that differs from the index, or with tar's messages.
    """
    tarball = downloads / package.tarball.name
    content = _read(tarball, package.tarball.size_bytes)
    digest = hashlib.sha256(content).hexdigest()
    if digest != package.tarball.sha256:
        raise InstallationError(
            f"{tarball} differs from the archive's index",
            detail=f"sha256 {digest}, expected {package.tarball.sha256}",
            hint="remove it and try again",
        )
    with tempfile.TemporaryDirectory() as private:
        checked = Path(private) / tarball.name
        checked.write_bytes(content)
        unpack_tarball(checked, tree)


def _read(tarball: Path, size_bytes: int) -> bytes:
    """Return a file's contents, at most one byte more than ``size_bytes``."""
    try:
        with open(tarball, "rb", opener=lambda path, _: os.open(path, _READ)) as file:
            return file.read(size_bytes + 1)
    except OSError as error:
        raise InstallationError(f"could not read {tarball}", detail=error.strerror) from error


def unpack_tarball(tarball: Path, tree: Path) -> None:
    """Unpack a tarball's only directory as ``tree``. Raises: InstallationError with tar's messages."""
    tree.mkdir(parents=True)
    # Root's tar keeps owners and permissions by default: a tarball could contain setuid programs.
    kept = ["--no-same-owner", "--no-same-permissions"]
    argv = ["tar", "--extract", *kept, "--strip-components=1", f"--file={tarball}"]
    done = capture([*argv, f"--directory={tree}"], limit_s=_UNPACK_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(f"could not unpack {tarball}", detail=_errors(done))


def version_in_tarball(tarball: Path, called: Path) -> str:
    """Return the version in a tarball of PostgreSQL. ``called``: its path for error messages.

    Raises: InstallationError for any other file; UsageError for an unsupported old version.
    """
    argv = ["tar", "--extract", "--to-stdout", "--wildcards", "--no-wildcards-match-slash"]
    done = capture([*argv, f"--file={tarball}", "*/configure"], limit_s=_UNPACK_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(
            f"{called} does not contain PostgreSQL's source, or is damaged",
            detail=_errors(done),
            hint="https://www.postgresql.org/ftp/source/ has releases with checksums",
        )
    return version_of(done.stdout, str(called))


def _errors(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return the messages of tar and its decompressor, without blank lines; None: there are none."""
    return "\n         ".join(line.strip() for line in done.stderr.splitlines() if line.strip()) or None
