"""Which suite a version comes from, and that only the tarball of the index is unpacked."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source import source_package
from pgdyno.builds.source.private_apt import SourceFile
from pgdyno.builds.source.source_package import (
    SourcePackage,
    choose_suites,
    describe_package,
    unpack,
    unpack_tarball,
    version_in_tarball,
)

# As the index of Debian 13 has them.
FILES_17 = (
    SourceFile("postgresql-17_17.11-0+deb13u1.dsc", 4284, "bf" * 32),
    SourceFile("postgresql-17_17.11.orig.tar.bz2", 21787224, "dd" * 32),
    SourceFile("postgresql-17_17.11-0+deb13u1.debian.tar.xz", 37348, "82" * 32),
)


@dataclass
class Suite:
    """A suite made of what a test says; ``asked`` tells whether its index was opened."""

    suite: str
    has: tuple[int, ...] | InstallationError
    contents: tuple[SourceFile, ...] = FILES_17
    asked: bool = field(default=False)

    def majors(self) -> tuple[int, ...]:
        self.asked = True
        if isinstance(self.has, InstallationError):
            raise self.has
        return self.has

    def codename(self) -> str:
        return "trixie"

    def files(self, major: int) -> tuple[SourceFile, ...]:
        return self.contents

    def download(self, major: int, target: Path) -> None:
        raise NotImplementedError


def unreachable(suite: str) -> Suite:
    return Suite(suite, InstallationError(f'could not read the index of suite "{suite}"', detail="Timeout"))


def test_a_tarball_brings_no_programs_that_run_as_their_owner(tmp_path: Path) -> None:
    tarball = tmp_path / "x.tar"
    with tarfile.open(tarball, "w") as archive:
        for name, mode in (("x/configure", 0o6777), ("x/src", 0o6666)):
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, 2
            archive.addfile(member, io.BytesIO(b"#!"))
    before = os.umask(0o022)
    try:
        unpack_tarball(tarball, tmp_path / "tree")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "tree").iterdir()}
    assert modes == {"configure": 0o755, "src": 0o644}


def test_the_first_suite_that_has_a_version_gives_it() -> None:
    own, stable, testing = Suite("bookworm", (15,)), Suite("stable", (17,)), Suite("testing", (17, 18))
    assert choose_suites((18, 17), [own, stable, testing]) == {18: testing, 17: stable}


def test_no_suite_is_opened_in_vain() -> None:
    own, stable, testing = Suite("bookworm", (15,)), Suite("stable", (17,)), Suite("testing", (18,))
    choose_suites((17,), [own, stable, testing])
    assert (own.asked, stable.asked, testing.asked) == (True, True, False)


def test_a_suite_out_of_reach_does_no_harm_if_others_have_everything() -> None:
    own, testing = Suite("bookworm", (15,)), Suite("testing", (18,))
    assert choose_suites((18,), [own, unreachable("stable"), testing]) == {18: testing}


def test_a_missing_version_is_answered_with_what_there_is() -> None:
    with pytest.raises(InstallationError) as caught:
        choose_suites((16, 17), [Suite("stable", (17,)), Suite("empty", ()), unreachable("testing")])
    assert str(caught.value) == (
        "the archive has no source package postgresql-16\n"
        "DETAIL:  stable has 17\n"
        "         empty has none\n"
        '         could not read the index of suite "testing"\n'
        "HINT:  choose a version that exists, or name an installed one by its prefix: /opt/pg16@default"
    )


def test_an_archive_out_of_reach_is_asked_once() -> None:
    stable = Suite("stable", (17,))
    with pytest.raises(InstallationError) as caught:
        choose_suites((17,), [unreachable("bookworm"), stable])
    assert caught.value.message == 'could not read the index of suite "bookworm"'
    assert caught.value.detail == "Timeout"
    assert not stable.asked


def test_a_package_has_its_version_from_its_description_and_its_checksum_from_the_index() -> None:
    assert describe_package(Suite("stable", (17,)), 17) == SourcePackage(
        "postgresql-17", "17.11-0+deb13u1", "trixie", FILES_17[1]
    )


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("postgresql-17_17.11.orig.tar.bz2", "17.11"),
        ("postgresql-18_18~rc1.orig.tar.bz2", "18rc1"),
        ("postgresql-18_18~beta2.orig.tar.gz", "18beta2"),
    ],
)
def test_the_released_version_stands_in_the_tarballs_name(name: str, version: str) -> None:
    package = SourcePackage("postgresql-18", "18-1", "trixie", SourceFile(name, 1, "00" * 32))
    assert package.upstream_version == version


def test_a_package_without_one_upstream_tarball_is_refused() -> None:
    with pytest.raises(InstallationError) as caught:
        describe_package(Suite("stable", (17,), FILES_17[:1]), 17)
    assert caught.value.message == (
        'the source package postgresql-17 of suite "stable" has an unexpected structure'
    )
    assert caught.value.detail == "its files: postgresql-17_17.11-0+deb13u1.dsc"


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    """A tarball with one top directory, as PostgreSQL's have."""
    if shutil.which("bzip2") is None:
        pytest.skip("not installed: bzip2 (apt install bzip2)")
    top = tmp_path / "postgresql-17.11"
    top.mkdir()
    (top / "configure").write_text("#!/bin/sh\n")
    path = tmp_path / "postgresql-17_17.11.orig.tar.bz2"
    subprocess.run(["tar", "-cjf", path, "-C", tmp_path, top.name], check=True, timeout=120)
    return path


def package(tarball: Path, sha256: str) -> SourcePackage:
    file = SourceFile(tarball.name, tarball.stat().st_size, sha256)
    return SourcePackage("postgresql-17", "17.11-1", "trixie", file)


def test_the_tarball_is_unpacked_without_its_top_directory(tarball: Path, tmp_path: Path) -> None:
    found = package(tarball, hashlib.sha256(tarball.read_bytes()).hexdigest())
    unpack(found, tmp_path, tmp_path / "tree")
    assert (tmp_path / "tree/configure").is_file()


def test_what_is_unpacked_is_what_was_checked(
    tarball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory belongs to the user that apt downloads as, who may exchange the file at any moment."""
    found = package(tarball, hashlib.sha256(tarball.read_bytes()).hexdigest())

    def exchanged_before_it_is_unpacked(from_file: Path, tree: Path) -> None:
        tarball.write_bytes(b"somebody else's")
        unpack_tarball(from_file, tree)

    monkeypatch.setattr(source_package, "unpack_tarball", exchanged_before_it_is_unpacked)
    unpack(found, tmp_path, tmp_path / "tree")
    assert (tmp_path / "tree/configure").is_file()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_a_tarball_that_is_no_plain_file_keeps_root_from_nothing(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "postgresql-17_17.11.orig.tar.bz2"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    found = SourcePackage("postgresql-17", "17.11-1", "trixie", SourceFile(place.name, 100, "00" * 32))
    with pytest.raises(InstallationError) as caught:
        unpack(found, tmp_path, tmp_path / "tree")
    assert caught.value.message in (f"{place} differs from the archive's index", f"could not read {place}")
    assert not (tmp_path / "tree").exists()


def test_a_tarball_that_the_index_does_not_describe_is_not_unpacked(tarball: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallationError) as caught:
        unpack(package(tarball, "00" * 32), tmp_path, tmp_path / "tree")
    assert caught.value.message == f"{tarball} differs from the archive's index"
    assert not (tmp_path / "tree").exists()


def test_a_tarball_that_is_damaged_is_refused_in_tars_words(tmp_path: Path) -> None:
    (tmp_path / "pg.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InstallationError) as caught:
        version_in_tarball(tmp_path / "pg.tar.gz", Path("/src/pg.tar.gz"))
    assert caught.value.message == "/src/pg.tar.gz does not contain PostgreSQL's source, or is damaged"
    assert "gzip: stdin: not in gzip format\n         tar: " in (caught.value.detail or "")
    assert "https://www.postgresql.org/ftp/source/" in (caught.value.hint or "")
