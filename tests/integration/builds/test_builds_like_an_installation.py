"""A build that is to take the place of an installation has its features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import CONFIGURE, build, request, unfetched

from pgdyno.base.errors import UsageError
from pgdyno.builds.build_request import BuildRequest


@pytest.fixture
def replaced(tmp_path: Path) -> Path:
    """An installation of PostgreSQL 18 that a build is to replace."""
    path = tmp_path / "replaced"
    (path / "bin").mkdir(parents=True)
    configured = "'--prefix=/p' '--without-readline' '--without-icu' '--with-llvm'"
    for name, said in (
        ("postgres", "postgres (PostgreSQL) 18.5"),
        ("pg_config", f"SHAREDIR = {path}\nCONFIGURE = {configured}"),
    ):
        (path / "bin" / name).write_text(f'#!/bin/sh\necho "{said}"\n')
        (path / "bin" / name).chmod(0o755)
    (path / "extension").mkdir()
    (path / "extension/vector.control").write_text("")
    return path


def test_a_build_like_an_installation_has_its_features_and_so_has_the_plain_one(
    tree: Path, replaced: Path
) -> None:
    manifest = build(replace(request(tree, "lto"), like=str(replaced)), Remembered())
    plain = build(replace(request(tree, "o2"), like=str(replaced)), Remembered())
    for one in (manifest, plain):
        options = [option for option in one.configure if option.startswith("--")]
        assert options == ["--enable-option-checking=fatal", "--without-readline", "--without-icu"]
        jit, extensions = one.notes
        assert jit.startswith("without JIT: ")
        assert extensions == "without these extensions of the replaced server: vector; --extensions adds them"
    assert build(request(tree, "o2"), Remembered()).name != plain.name


def test_an_installation_of_another_major_version_is_refused_before_anything_is_fetched(
    replaced: Path,
) -> None:
    with pytest.raises(UsageError, match='is PostgreSQL 18, --source "debian:17" is 17'):
        build(BuildRequest("debian:17", "o2", "gcc", like=str(replaced)), Remembered(), fetch=unfetched)


def test_a_tree_of_another_major_version_is_refused(tree: Path, replaced: Path) -> None:
    (tree / "configure").write_text(CONFIGURE.replace("18.6", "17.6"))
    with pytest.raises(UsageError, match=f'--source "{tree}" is 17'):
        build(replace(request(tree, "o2"), like=str(replaced)), Remembered())
