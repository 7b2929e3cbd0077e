"""Builds from sources that patches of a test's own have changed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import (
    PARTS,
    VERIFIED,
    build,
    interrupted,
    request,
    stages_of,
    unfetched,
)

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.patching import patches as catalogue
from pgdyno.builds.product.manifest import AppliedPatch, Verified
from pgdyno.builds.verifying.verification import Candidate
from pgdyno.builds.verifying.verify_again import verify_build
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation

PATCH = """\
Title: says so
Idea: none
Release: 18.6
Verdict: none

--- a/main.c
+++ b/main.c
@@ -5,4 +5,4 @@
 #include <unistd.h>
 int main(int argc, char **argv) {
-    if (argc > 1 && !strcmp(argv[1], "--version")) { puts("postgres (PostgreSQL) 18.6"); return 0; }
+    if (argc > 1 && !strcmp(argv[1], "--version")) { puts("postgres (PostgreSQL) 18.6 CHANGED"); return 0; }
     for (int child = 0; child < 3; child++)
"""
SHA256 = "c5a65e92e8319283b389f7a8912a40d3f35115254dbbbae1698ca03e37221c83"  # by sha256sum, of the diff
RELEASED, CHANGED = "postgres (PostgreSQL) 18.6\n", "postgres (PostgreSQL) 18.6 CHANGED\n"
PutPatch = Callable[[str], None]


@pytest.fixture(autouse=True)
def put_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PutPatch:
    """Replace the text of the only patch in the catalogue, which is called ``says``."""
    place = tmp_path / "patches/18/says.patch"
    place.parent.mkdir(parents=True)
    place.write_text(PATCH)
    monkeypatch.setattr(catalogue, "PATCHES", tmp_path / "patches")

    def put(text: str) -> None:
        place.write_text(text)

    return put


def version_of(installation: Installation) -> str:
    """Return what a program says that it is."""
    argv = [installation.program("postgres"), "--version"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("plain")
def test_what_is_built_is_patched_and_says_so(tree: Path) -> None:
    said = Remembered()
    manifest = build(replace(request(tree, "o2"), patches=("says",)), said)
    assert stages_of(said) == ["unpack", "configure", "compile", "verify", "install"]
    assert version_of(find_installation(manifest.name, workspace())) == CHANGED
    assert (tree / "main.c").read_text().count("CHANGED") == 0
    assert manifest.optimised is not None
    assert manifest.optimised.recipe == "o2+patched"
    assert manifest.patched is not None
    assert manifest.patched.patches == (AppliedPatch("says", SHA256),)
    assert "PGDYNO_PATCHES=says" in manifest.configure


@pytest.mark.usefixtures("plain")
def test_it_is_another_build_than_without_and_there_when_it_is_asked_for_again(tree: Path) -> None:
    patched, released = replace(request(tree, "o3"), patches=("says",)), request(tree, "o3")
    manifest = build(patched, Remembered())
    assert build(released, Remembered()).name != manifest.name
    said = Remembered()
    assert build(patched, said).name == manifest.name
    assert said.steps == [f"{manifest.name} already exists"]


def test_the_baseline_build_that_it_is_verified_against_is_not_patched(tree: Path) -> None:
    references = []

    def verify(subject: Candidate, *_: object) -> Verified:
        references.append(subject.reference)
        return VERIFIED

    manifest = build(replace(request(tree, "o2"), patches=("says",)), Remembered(), verify=verify)
    none, reference = references
    assert none is None
    assert reference is not None
    assert reference.name != manifest.name
    assert version_of(reference) == RELEASED


def test_a_patch_that_does_not_apply_is_said_before_anything_is_compiled(
    tree: Path, home: Path, put_patch: PutPatch
) -> None:
    put_patch(PATCH.replace('PostgreSQL) 18.6"', 'PostgreSQL) 18.5"'))
    said = Remembered()
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), patches=("says",)), said)
    assert caught.value.message == 'the patch "says" does not apply to PostgreSQL 18.6'
    assert (caught.value.detail or "").startswith("main.c, hunk 1 of 1: line 7 should be ")
    assert stages_of(said) == ["unpack"]
    assert list((home / "builds").glob("built-*")) == []


def test_an_unknown_patch_is_named_before_anything_is_fetched(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), patches=("says", "more")), Remembered(), fetch=unfetched)
    assert str(caught.value) == 'patch "more" does not exist\nDETAIL:  existing patches: says: says so'


def test_a_package_of_another_version_is_not_fetched(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), source="debian:17", patches=("says",)), Remembered(), fetch=unfetched)
    assert str(caught.value) == (
        'patch "says" does not exist for PostgreSQL 17\nDETAIL:  existing patches: none'
    )


def test_the_recipe_alone_names_no_patch(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(request(tree, "o2+patched"), Remembered(), fetch=unfetched)
    assert str(caught.value) == (
        '--recipe "o2+patched" names no patch\nHINT:  --patch NAME adds a patch, and patched to the recipe'
    )


@pytest.mark.usefixtures("plain")
def test_an_interrupted_build_goes_on_with_its_patched_sources(tree: Path) -> None:
    asked = replace(request(tree, "o2"), patches=("says",))
    for stage in ("unpack", "configure"):
        with interrupted(stage), pytest.raises(KeyboardInterrupt):
            build(asked, Remembered())
    said = Remembered()
    manifest = build(asked, said)
    assert stages_of(said) == ["configure", "compile", "verify", "install"]
    assert f"resuming {manifest.name}, interrupted after: unpack" in said.steps
    assert version_of(find_installation(manifest.name, workspace())) == CHANGED


@pytest.mark.usefixtures("plain")
def test_a_build_is_verified_again_with_the_patches_that_it_was_made_with(
    tree: Path, put_patch: PutPatch
) -> None:
    manifest = build(replace(request(tree, "o2"), patches=("says",)), Remembered())
    put_patch(PATCH.replace("CHANGED", "CHANGED AGAIN"))
    with pytest.raises(InstallationError) as caught:
        verify_build(manifest.name, Remembered(), PARTS.verify)
    assert caught.value.message == f"{manifest.name} was built with patches that differ from this pgdyno's"
    assert caught.value.detail == "changed since: says"
