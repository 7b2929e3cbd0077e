"""A source package fetched for real, through our own apt, while the host's apt stays as it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source.apt_sources import host_repositories, source_suites
from pgdyno.builds.source.private_apt import PrivateApt, open_suites
from pgdyno.builds.source.source_package import choose_suites, describe_package, unpack
from pgdyno.host.processes.running import is_installed

HOST_FILES = ("/etc/apt", "/var/lib/apt", "/var/cache/apt")


def state(directories: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Return the time of change and the size of everything below directories."""
    return {str(path): _stamp(path) for top in directories for path in [Path(top), *Path(top).rglob("*")]}


def _stamp(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_mtime_ns, found.st_size


@pytest.fixture
def suites(tmp_path: Path) -> Sequence[PrivateApt]:
    """Return the archive's suites; skips where the host has no apt, or no archive within reach."""
    if not is_installed("apt-get"):
        pytest.skip("apt-get is not installed")
    try:
        opened = open_suites(source_suites(host_repositories()), tmp_path / "apt")
        opened[0].majors()
    except InstallationError as error:
        pytest.skip(f"no archive within reach: {error.message}")
    return opened


def test_a_source_package_is_fetched_and_unpacked_and_the_hosts_apt_stays_untouched(
    suites: Sequence[PrivateApt], tmp_path: Path
) -> None:
    before = state(HOST_FILES)
    major = next(major for suite in suites for major in suite.majors())
    suite = choose_suites((major,), suites)[major]
    package = describe_package(suite, major)
    suite.download(major, tmp_path / "sources")
    unpack(package, tmp_path / "sources", tmp_path / "tree")
    assert package.version.startswith(f"{major}.")
    assert (tmp_path / "tree/configure").is_file()
    assert (tmp_path / "tree/src/backend/postmaster/postmaster.c").is_file()
    assert state(HOST_FILES) == before

    # A second download finds everything there, and leaves it alone.
    tarball = tmp_path / "sources" / package.tarball.name
    written = _stamp(tarball)
    suite.download(major, tmp_path / "sources")
    assert _stamp(tarball) == written
