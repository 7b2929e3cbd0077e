"""What a source is fetched as, and that a tarball is looked into once."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import InstallationError, RefusedError
from pgdyno.builds import fetch as fetching
from pgdyno.builds.fetch import downloads, fetch
from pgdyno.builds.source.private_apt import SourceFile
from pgdyno.builds.source.source_package import SourcePackage
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.workspace import Workspace


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home", caller())


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    """A release as PostgreSQL publishes it, but for all that is not needed to know its version."""
    if shutil.which("bzip2") is None:
        pytest.skip("not installed: bzip2 (apt install bzip2)")
    top = tmp_path / "postgresql-18.6"
    top.mkdir()
    (top / "configure").write_text("PACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='18.6'\n")
    path = tmp_path / "postgresql-18.6.tar.bz2"
    subprocess.run(["tar", "-cjf", path, "-C", tmp_path, top.name], check=True, timeout=120)
    return path


def test_a_tarball_is_looked_into_once(
    place: Workspace, tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch(str(tarball), place, Remembered())
    assert (first.version, first.major, first.tarball) == ("18.6", 18, "postgresql-18.6.tar.bz2")
    monkeypatch.setattr(fetching, "version_in_tarball", None)  # calling it would fail
    assert fetch(str(tarball), place, Remembered()).version == "18.6"


def test_a_version_that_could_not_be_written_is_looked_up_again(
    place: Workspace, tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(str(tarball), place, Remembered())
    assert list(place.builds().glob("version-*")) == []
    assert fetch(str(tarball), place, Remembered()).version == "18.6"


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree as it is checked out, but for all that is not needed to know its version."""
    path = tmp_path / "postgresql"
    path.mkdir()
    (path / "configure").write_text("PACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='18.6'\n")
    return path


@pytest.mark.timeout(60)  # a FIFO keeps nobody waiting
def test_a_tree_with_a_fifo_is_refused(place: Workspace, tree: Path) -> None:
    fetched = fetch(str(tree), place, Remembered())
    os.mkfifo(tree / "fifo")
    with pytest.raises(RefusedError, match='"fifo" is not a regular file'):
        fetched.unpack(place.builds() / "source")
    with pytest.raises(RefusedError, match='"fifo" is not a regular file'):
        fetch(str(tree), place, Remembered())


def test_a_copy_is_what_was_asked_for_or_none(place: Workspace, tree: Path, tarball: Path) -> None:
    of_tree, of_tarball = (fetch(str(path), place, Remembered()) for path in (tree, tarball))
    of_tree.unpack(place.builds() / "tree")
    of_tarball.unpack(place.builds() / "tarball")
    for name in ("tree", "tarball"):
        assert [path.name for path in (place.builds() / name).iterdir()] == ["configure"]
    (tree / "main.c").touch()
    with tarball.open("ab") as file:
        file.write(b"more")
    for fetched in (of_tree, of_tarball):
        with pytest.raises(InstallationError, match="changed during the build"):
            fetched.unpack(place.builds() / f"changed-{fetched.sha256}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled")
def test_root_is_not_led_to_its_own_files(place: Workspace, tarball: Path, tmp_path: Path) -> None:
    secret, home = tmp_path / "secret.tar.bz2", tmp_path / "theirs"
    tarball.rename(secret)
    home.mkdir()
    os.chown(home, 4711, 4711)
    (home / "pg.tar.bz2").symlink_to(secret)
    with pytest.raises(RefusedError, match=r'"pg\.tar\.bz2" is a symbolic link'):
        fetch(str(home / "pg.tar.bz2"), place, Remembered())
    (tmp_path / "postgresql-18.6").chmod(0o700)
    (home / "tree").symlink_to(tmp_path / "postgresql-18.6")
    os.chown(home / "tree", 4711, 4711, follow_symlinks=False)
    with pytest.raises(RefusedError, match="Permission denied"):
        fetch(str(home / "tree"), place, Remembered())


@pytest.fixture
def archive(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> list[SourcePackage]:
    """An archive with one package; returns what was fetched from it."""
    fetched: list[SourcePackage] = []

    def fetch_packages(*_: object) -> dict[int, SourcePackage]:
        file = SourceFile("postgresql-18_18~rc1.orig.tar.bz2", 1, "ab" * 32)
        fetched.append(SourcePackage("postgresql-18", f"18~rc1-{len(fetched) + 1}", "trixie", file))
        downloads(place).mkdir(exist_ok=True)
        (downloads(place) / file.name).write_text("")
        return {18: fetched[-1]}

    monkeypatch.setattr(fetching, "fetch_packages", fetch_packages)
    return fetched


def test_a_packages_version_needs_no_look_into_it(place: Workspace, archive: list[SourcePackage]) -> None:
    found = fetch("debian:18", place, Remembered())
    assert (found.version, found.sha256, found.package) == ("18rc1", "ab" * 32, archive[0])


def test_the_archive_is_asked_once_a_day(place: Workspace, archive: list[SourcePackage]) -> None:
    first, second = (fetch("debian:18", place, Remembered()).package for _ in range(2))
    assert len(archive) == 1
    assert first == second == archive[0]
    yesterday = time.time() - 86_401
    os.utime(place.builds() / "package-18.json", (yesterday, yesterday))
    assert fetch("debian:18", place, Remembered()).package == archive[1]


def test_a_tarball_that_was_removed_is_fetched_again(place: Workspace, archive: list[SourcePackage]) -> None:
    fetch("debian:18", place, Remembered())
    (downloads(place) / archive[0].tarball.name).unlink()
    assert fetch("debian:18", place, Remembered()).package == archive[1]
