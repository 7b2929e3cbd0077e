"""What --source names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError, RefusedError, StorageError, UsageError
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
from pgdyno.host.files.source_tree import opened_tree


def checksum_of(tree: Path) -> str:
    with opened_tree(tree) as found:
        return checksum(found.files(NOT_SOURCE))


def version_of(tree: Path) -> str:
    with opened_tree(tree) as found:
        return read_version(found, tree)


def configure(version: str = "18.6", name: str = "PostgreSQL") -> str:
    return f"#! /bin/sh\nPACKAGE_NAME='{name}'\nPACKAGE_VERSION='{version}'\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "postgresql"
    (root / "src/backend").mkdir(parents=True)
    (root / "configure").write_text(configure())
    (root / "src/backend/main.c").write_text("int main(void) { return 0; }\n")
    return root


def test_the_three_kinds_of_source(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "pg.tar.gz").write_bytes(b"x")
    assert parse_source("debian:18", opened_tree) == Package(18)
    assert parse_source(str(tree), opened_tree) == Tree(tree)
    assert parse_source(str(tmp_path / "pg.tar.gz"), opened_tree) == Tarball(tmp_path / "pg.tar.gz")


def test_anything_else_is_an_error_that_shows_all_three() -> None:
    with pytest.raises(UsageError) as caught:
        parse_source("/nowhere/at/all", opened_tree)
    assert str(caught.value) == (
        '--source "/nowhere/at/all" is neither a directory, nor a tarball, nor debian:MAJOR\n'
        "DETAIL:  /nowhere/at/all does not exist\n"
        "HINT:  --source debian:18, --source postgresql-18.6.tar.bz2, or --source ~/src/postgresql"
    )


def test_versions_that_are_too_old_are_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match='--source "debian:13" is PostgreSQL 13'):
        parse_source("debian:13", opened_tree)
    (tree / "configure").write_text(configure("9.6.24"))
    with pytest.raises(UsageError, match="is PostgreSQL 9\nDETAIL:  versions from 14 on can be built"):
        parse_source(str(tree), opened_tree)


@pytest.mark.parametrize("made", ["GNUmakefile", "config.status", "src/Makefile.global"])
def test_a_tree_that_was_configured_in_place_is_refused(tree: Path, made: str) -> None:
    (tree / made).write_text("")
    with pytest.raises(RefusedError) as caught:
        parse_source(str(tree), opened_tree)
    assert str(caught.value) == (
        f'--source "{tree}" was configured in place\n'
        f"DETAIL:  found {made}: objects of that build could end up in this one\n"
        "HINT:  run make distclean there, or name a clean checkout: git worktree add ../clean"
    )


def test_other_programs_sources_are_told_apart(tree: Path) -> None:
    (tree / "configure").write_text(configure(name="bash"))
    with pytest.raises(InstallationError, match="does not contain PostgreSQL's source"):
        parse_source(str(tree), opened_tree)
    (tree / "configure").unlink()
    with pytest.raises(InstallationError) as caught:
        parse_source(str(tree), opened_tree)
    assert str(caught.value) == (
        f"{tree} does not contain PostgreSQL's source\n"
        f"DETAIL:  {tree}/configure: no such file or directory\n"
        "HINT:  for example --source debian:18, --source postgresql-18.6.tar.bz2, "
        "or --source ~/src/postgresql"
    )


def test_a_tree_for_meson_alone_is_told_what_is_missing(tree: Path) -> None:
    (tree / "configure").rename(tree / "meson.build")
    with pytest.raises(InstallationError) as caught:
        parse_source(str(tree), opened_tree)
    assert caught.value.message == f"{tree} has no configure"
    assert caught.value.hint == (
        "trees are configured by autoconf's configure, not by meson: releases and PostgreSQL's repository "
        "have it; git checkout configure restores it"
    )


def test_a_version_and_its_major(tree: Path) -> None:
    assert version_of(tree) == "18.6"
    (tree / "configure").write_text(configure("19devel"))
    assert version_of(tree) == "19devel"
    assert [major_of(version) for version in ("18.6", "19devel", "18beta1", "9.6.24")] == [18, 19, 18, 9]


def test_a_trees_checksum_knows_contents_names_and_programs(tree: Path) -> None:
    first = checksum_of(tree)
    assert checksum_of(tree) == first
    (tree / "src/backend/main.c").write_text("int main(void) { return 1; }\n")
    changed = checksum_of(tree)
    (tree / "configure").chmod(0o755)
    runnable = checksum_of(tree)
    (tree / "src/backend/main.c").rename(tree / "src/backend/other.c")
    renamed = checksum_of(tree)
    (tree / "link").symlink_to("configure")
    linked = checksum_of(tree)
    assert len({first, changed, runnable, renamed, linked}) == 5


def test_a_version_controls_own_files_are_no_source(tree: Path) -> None:
    first = checksum_of(tree)
    (tree / ".git").mkdir()
    (tree / ".git/index").write_text("x")
    assert checksum_of(tree) == first


def test_a_copy_has_all_but_a_version_controls_own_files(tree: Path, tmp_path: Path) -> None:
    (tree / ".git").mkdir()
    (tree / "empty").mkdir()
    (tree / "configure").chmod(0o755)
    (tree / "link").symlink_to("src/backend")
    os.utime(tree / "configure", (1, 1))
    with opened_tree(tree) as found:
        assert copy_tree(found, tmp_path / "copy") == checksum_of(tree) == checksum_of(tmp_path / "copy")
    copied = tmp_path / "copy"
    assert sorted(one.name for one in copied.iterdir()) == ["configure", "empty", "link", "src"]
    assert (copied / "configure").stat().st_mtime == 1
    assert os.access(copied / "configure", os.X_OK)
    assert (copied / "link").readlink() == Path("src/backend")


def test_a_copy_that_cannot_be_written_is_no_fault_of_the_source(tree: Path) -> None:
    with opened_tree(tree) as found, pytest.raises(StorageError) as caught:
        copy_tree(found, tree / "configure/copy")
    assert str(caught.value) == f'could not write "{tree}/configure/copy"\nDETAIL:  Not a directory'
