"""Find PostgreSQL's source packages in a suite, and fetch one: the upstream tarball, checked.

Every release of a distribution has one major version (Debian 12 has 15, Debian 13 has 17), so two majors
usually come from two suites. The first suite that has a version gives it; suites are opened only as needed,
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
"""One of Debian's patches (50-per-version-dirs) sends libraries to /usr/lib/postgresql whatever the prefix:
what is measured is PostgreSQL as it was released, the same way for every version."""

_TARBALL = re.compile(r"^postgresql-\d+_(?P<version>[^_]+)\.orig\.tar\.(?:gz|bz2|xz|zst)$")
_DESCRIPTION = re.compile(r"^postgresql-\d+_(?P<version>[^_]+)\.dsc$")
_UNPACK_LIMIT_S = 300.0  # arbitrary; it takes about 5 s
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a FIFO keeps nobody waiting


class SourceSuite(Protocol):
    """Queries to a suite; ``private_apt.py`` answers them."""

    @property
    def suite(self) -> str:
        """The suite's name as requested."""
        ...

    def majors(self) -> tuple[int, ...]:
        """Return the major versions it has. Raises: InstallationError if that cannot be found out."""
        ...

    def codename(self) -> str:
        """Return the release's own name."""
        ...

    def files(self, major: int) -> tuple[SourceFile, ...]:
        """Return the files of a source package."""
        ...

    def download(self, major: int, target: Path) -> None:
        """Fetch a source package."""
        ...


@dataclass(frozen=True)
class SourcePackage:
    """A source package as found in an archive."""

    name: str
    version: str  # the distribution's: 17.11-0+deb13u1
    suite: str  # the release's own name: trixie
    tarball: SourceFile

    @property
    def upstream_version(self) -> str:
        """The upstream version: ``17.11``; 18rc1 for the distribution's 18~rc1."""
        found = _TARBALL.match(self.tarball.name)
        assert found is not None  # noqa: S101 — describe_package has chosen it by this name
        return found["version"].replace("~", "")


def choose_suites(majors: Sequence[int], suites: Sequence[SourceSuite]) -> dict[int, SourceSuite]:
    """Return for each major the first suite that has it, in the order of ``majors``.

    Raises: InstallationError naming what every suite has, or why it could not be asked. An archive whose
    first suite cannot be asked is not asked further: each time would wait for the network again.
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
            hint="ask for a version that is there, or name one of your own by its prefix: /opt/pg16@default",
        )
    return {major: chosen[major] for major in majors}


def describe_package(suite: SourceSuite, major: int) -> SourcePackage:
    """Return the entry of a source package in the suite's index."""
    files = suite.files(major)
    tarballs = [file for file in files if _TARBALL.match(file.name)]
    versions = [found["version"] for file in files if (found := _DESCRIPTION.match(file.name))]
    if len(tarballs) != 1 or len(versions) != 1:
        raise InstallationError(
            f'the source package postgresql-{major} of suite "{suite.suite}" is not built as expected',
            detail=f"its files are: {', '.join(file.name for file in files)}",
        )
    return SourcePackage(f"postgresql-{major}", versions[0], suite.codename(), tarballs[0])


def unpack(package: SourcePackage, downloads: Path, tree: Path) -> None:
    """Unpack the upstream tarball into ``tree``, which is made, after checking it once more.

    It is read once: the directory belongs to apt's user, who could exchange the file after the check.
    Raises: InstallationError for a tarball that is not the index's, or tar's own words.
    """
    tarball = downloads / package.tarball.name
    content = _read(tarball, package.tarball.size_bytes)
    digest = hashlib.sha256(content).hexdigest()
    if digest != package.tarball.sha256:
        raise InstallationError(
            f"{tarball} differs from the archive's index",
            detail=f"sha256 {digest}, expected {package.tarball.sha256}",
            hint="remove it, and try again",
        )
    with tempfile.TemporaryDirectory() as private:
        checked = Path(private) / tarball.name
        checked.write_bytes(content)
        unpack_tarball(checked, tree)


def _read(tarball: Path, size_bytes: int) -> bytes:
    """Return a file, with one byte more than it should have if it is larger."""
    try:
        with open(tarball, "rb", opener=lambda path, _: os.open(path, _READ)) as file:
            return file.read(size_bytes + 1)
    except OSError as error:
        raise InstallationError(f"could not read {tarball}", detail=error.strerror) from error


def unpack_tarball(tarball: Path, tree: Path) -> None:
    """Unpack a tarball, whose one directory becomes ``tree``. Raises: InstallationError with tar's words."""
    tree.mkdir(parents=True)
    # Root's tar keeps owners and permissions by default: a tarball could bring programs that run as root.
    kept = ["--no-same-owner", "--no-same-permissions"]
    argv = ["tar", "--extract", *kept, "--strip-components=1", f"--file={tarball}"]
    done = capture([*argv, f"--directory={tree}"], limit_s=_UNPACK_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(f"could not unpack {tarball}", detail=_said(done))


def version_in_tarball(tarball: Path, called: Path) -> str:
    """Return the version in a tarball of PostgreSQL, which errors call by another name.

    Raises: InstallationError if it is none; UsageError.
    """
    argv = ["tar", "--extract", "--to-stdout", "--wildcards", "--no-wildcards-match-slash"]
    done = capture([*argv, f"--file={tarball}", "*/configure"], limit_s=_UNPACK_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(
            f"{called} holds no sources of PostgreSQL, or is damaged",
            detail=_said(done),
            hint="https://www.postgresql.org/ftp/source/ has releases, with their checksums",
        )
    return version_of(done.stdout, str(called))


def _said(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return the output of tar and its decompressor, without blank lines."""
    return "\n         ".join(line.strip() for line in done.stderr.splitlines() if line.strip()) or None
