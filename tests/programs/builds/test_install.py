"""Installing and removing servers, with an archive and a build that are made here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import InstallationError, RefusedError, StorageError, UsageError
from pgdyno.builds.compiling.source_build import Built, SourceBuild
from pgdyno.builds.install import InstallParts, InstallRequest, install_from_source
from pgdyno.builds.product.manifest import FILE, read_manifest
from pgdyno.builds.servers import list_servers, remove_server
from pgdyno.builds.source.private_apt import SourceFile
from pgdyno.builds.source.source_package import SourcePackage
from pgdyno.builds.spec.configure_options import ConfigureOptions, plan_options

REQUEST = InstallRequest((17, 18), "-O2", wants_liburing=True)


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of the test's own, and a host that has everything needed."""
    monkeypatch.setattr(SourceBuild, "run", build)
    return own_home


def options(majors: tuple[int, ...], cflags: str, *, wants_liburing: bool) -> ConfigureOptions:
    return plan_options(majors, (), "gcc", cflags, wants_liburing=wants_liburing)


def fetch(_place: object, majors: Sequence[int], _progress: object) -> dict[int, SourcePackage]:
    file = SourceFile("x.orig.tar.bz2", 1, "00" * 32)
    return {major: SourcePackage(f"postgresql-{major}", f"{major}.1-1", "trixie", file) for major in majors}


def build(self: SourceBuild, destination: Path, watch: Callable[[float], None]) -> Built:
    """Put a program there that says it is PostgreSQL."""
    watch(0.5)
    staged = destination / self.prefix.relative_to("/")
    (staged / "bin").mkdir(parents=True)
    postgres = staged / "bin/postgres"
    postgres.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {self.major}.1'\n")
    postgres.chmod(0o755)
    return Built(staged, f"{self.major}.1", "-Wall -O2", 1.0)


PARTS = InstallParts(
    find_options=options,
    fetch_packages=fetch,
    unpack=lambda _package, _downloads, tree: tree.mkdir(),
    compiler_version=lambda _: "gcc (Debian 12.2.0-14) 12.2.0",
)


def unfetched(*_: object) -> dict[int, SourcePackage]:
    raise AssertionError("packages were fetched")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_every_version_gets_a_prefix_with_a_manifest(home: Path) -> None:
    manifests = install_from_source(REQUEST, Remembered(), PARTS)
    assert [one.name for one in manifests] == ["source-17", "source-18"]
    assert names(home / "servers") == ["source-17", "source-18"]
    for manifest in manifests:
        assert read_manifest(home / "servers" / manifest.name).value == manifest
    assert manifests[0].package_version == "17.1-1"
    assert "--with-liburing" in manifests[1].configure


def test_what_was_built_is_listed_with_its_manifest(home: Path) -> None:
    install_from_source(REQUEST, Remembered(), PARTS)
    listed = {server.name: server for server in list_servers()}
    assert listed["source-18"].version == "18.1"
    manifest = listed["source-18"].manifest.or_none()
    assert manifest is not None
    assert manifest.suite == "trixie"


def test_what_is_there_already_is_not_built_again(home: Path) -> None:
    before = install_from_source(REQUEST, Remembered(), PARTS)
    progress = Remembered()
    assert install_from_source(REQUEST, progress, replace(PARTS, fetch_packages=unfetched)) == before
    assert "source-17 is already installed: PostgreSQL 17.1" in progress.steps


def test_another_build_is_not_taken_for_what_is_asked_for(home: Path) -> None:
    install_from_source(REQUEST, Remembered(), PARTS)
    with pytest.raises(InstallationError) as caught:
        install_from_source(InstallRequest((17,), "-O3", wants_liburing=False), Remembered(), PARTS)
    assert caught.value.message == "source-17 is already installed with other options"
    assert "CFLAGS=-O2" in (caught.value.detail or "")
    assert caught.value.hint == "remove it with pgdyno server remove source-17, then install it again"


def test_a_failed_build_leaves_nothing_that_looks_installed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: SourceBuild, destination: Path, watch: Callable[[float], None]) -> Built:
        build(self, destination, watch)
        raise InstallationError("building PostgreSQL 17 failed")

    monkeypatch.setattr(SourceBuild, "run", fail)
    with pytest.raises(InstallationError):
        install_from_source(REQUEST, Remembered(), PARTS)
    assert names(home / "servers") == []
    assert names(home / "scratch") == []


def test_what_a_killed_build_has_left_is_cleared_away(home: Path) -> None:
    (home / "servers/.source-17.partial/bin").mkdir(parents=True)
    install_from_source(REQUEST, Remembered(), PARTS)
    assert names(home / "servers") == ["source-17", "source-18"]


def test_a_disk_that_is_too_small_is_noticed_before_anything_is_fetched(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 0))
    with pytest.raises(StorageError) as caught:
        install_from_source(REQUEST, Remembered(), replace(PARTS, fetch_packages=unfetched))
    assert caught.value.message == f"not enough disk space in {home} for building PostgreSQL"
    assert caught.value.hint == "remove something, or set PGDYNO_HOME to a directory on a larger disk"


def test_the_time_left_is_told_from_what_is_done(home: Path) -> None:
    progress = Remembered()
    install_from_source(REQUEST, progress, PARTS)
    ((done_s, total_s),) = progress.advances  # the second report would come too soon
    assert total_s == pytest.approx(4 * done_s)  # half of the first of two versions


def test_a_built_server_is_removed_by_its_name(home: Path) -> None:
    install_from_source(REQUEST, Remembered(), PARTS)
    assert remove_server("source-17") == home / "servers/source-17"
    assert names(home / "servers") == ["source-18"]


@pytest.mark.parametrize("name", ["source-16", "embedded", "..", "../servers/source-18", ""])
def test_only_what_pgdyno_built_is_removed(name: str, home: Path) -> None:
    install_from_source(REQUEST, Remembered(), PARTS)
    with pytest.raises(UsageError) as caught:
        remove_server(name)
    assert caught.value.message == f'pgdyno has not built a server "{name}"'
    assert caught.value.detail == "built: source-17, source-18"
    assert names(home / "servers") == ["source-17", "source-18"]


def test_a_server_in_use_is_not_removed(home: Path) -> None:
    install_from_source(REQUEST, Remembered(), PARTS)
    program = home / "servers/source-17/bin/sleep"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        try:
            with pytest.raises(RefusedError) as caught:
                remove_server("source-17")
        finally:
            process.kill()
    assert caught.value.message == 'server "source-17" is in use'
    assert caught.value.detail == f"running processes: {process.pid}"
    assert (home / "servers/source-17" / FILE).is_file()
