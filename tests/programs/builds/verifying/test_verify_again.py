"""A build is tried again, and what comes out is written down."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fix_builds import MANIFEST, put_build
from tests.fix_progress import Remembered

from pgdyno.base.errors import InstallationError
from pgdyno.builds.needs import prerequisites
from pgdyno.builds.patching import patches as catalogue
from pgdyno.builds.product.manifest import AppliedPatch, Manifest, Passed, Patched, Verified, read_manifest
from pgdyno.builds.verifying import verify_again
from pgdyno.builds.verifying.verify_again import Verify, verify_build
from pgdyno.cli.build import command
from pgdyno.postgres.process.workspace import Workspace

AGAIN = Verified((Passed("regress", 231),), "", 0, 20, 150.0)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The source that is fetched, and a host with all programs: tests are compiled by writing down how."""

    def unpack(tree: Path) -> None:
        for directory in ("src/test/regress", "src/interfaces/libpq", "src/test/isolation"):
            (tree / directory).mkdir(parents=True)
            (tree / directory / "Makefile").write_text("all:\n\techo '$(rpathdir)' > compiled\n")
        (tree / "configure").write_text("#!/bin/sh\necho $* > configured\n")
        (tree / "configure").chmod(0o755)

    found = SimpleNamespace(sha256="ab", version="18.6", unpack=unpack)
    monkeypatch.setattr(prerequisites, "is_installed", lambda _: True)
    return found


def failed(*_: object) -> Verified:
    raise InstallationError("PostgreSQL 18.6 failed its own tests: regress")


def try_again(name: str, source: Any, verify: Verify = failed, said: Remembered | None = None) -> Manifest:
    """Verify a build by what is given, from the source that is."""
    return verify_build(name, said or Remembered(), verify, lambda *_: source)


assert MANIFEST.optimised is not None
PLAIN = replace(
    MANIFEST, name="built-0000000000ff", optimised=replace(MANIFEST.optimised, recipe="o2", target=None),
    verified=AGAIN,
)  # fmt: skip
needs_make = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("setpriv") is None,
    reason="not installed: make, or setpriv (apt install make util-linux)",
)


@needs_make
def test_a_build_that_is_tried_again_has_the_new_result(
    install_build: Callable[[Manifest], Path], builds_place: Workspace, source: SimpleNamespace
) -> None:
    prefix = install_build(replace(MANIFEST, configure=("--with-icu",)))
    install_build(replace(PLAIN, configure=("--with-icu", "CFLAGS=-O2")))
    os.utime(prefix, (2_000_000_000, 2_000_000_000))  # the newest
    seen: list[str] = []

    def passed(subject: Any, *_: object) -> Verified:
        tree = subject.making.tree
        seen.append((tree / "configured").read_text().strip())
        seen.append((tree / "src/test/regress/compiled").read_text().strip())
        assert subject.tested.bin_directory == prefix / "bin"
        assert subject.reference.name == PLAIN.name
        return AGAIN

    assert try_again("built", source, passed).verified == AGAIN
    assert seen == [f"--prefix={prefix} --with-icu", "$ORIGIN/../lib:$ORIGIN/.."]
    assert read_manifest(prefix).value == replace(MANIFEST, configure=("--with-icu",), verified=AGAIN)
    assert list(builds_place.builds().iterdir()) == []
    assert prefix.stat().st_mtime == 2_000_000_000


DIFF = """\
--- a/configure
+++ b/configure
@@ -1,2 +1,2 @@
 #!/bin/sh
-echo $* > configured
+echo patched $* > configured
"""


@needs_make
def test_the_tests_of_a_patched_build_are_compiled_from_patched_sources(
    install_build: Callable[[Manifest], Path],
    source: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "18").mkdir()
    header = "Title: t\nIdea: i\nRelease: 18.6\nVerdict: v\n\n"
    (tmp_path / "18/says.patch").write_text(header + DIFF)
    monkeypatch.setattr(catalogue, "PATCHES", tmp_path)
    assert MANIFEST.optimised is not None
    patched = Patched((AppliedPatch("says", hashlib.sha256(DIFF.encode()).hexdigest()),), ())
    install_build(replace(MANIFEST, optimised=replace(MANIFEST.optimised, patched=patched)))
    install_build(PLAIN)
    seen = []

    def passed(subject: Any, *_: object) -> Verified:
        seen.append((subject.making.tree / "configured").read_text().split()[0])
        return AGAIN

    try_again(MANIFEST.name, source, passed)
    assert seen == ["patched"]
    (tmp_path / "18/says.patch").write_text(header + DIFF.replace("+echo patched", "+echo otherwise"))
    assert refusal(source) == "changed since: says"
    (tmp_path / "18/says.patch").unlink()
    assert refusal(source) == "removed since: says"


def refusal(source: SimpleNamespace) -> str | None:
    """Return which patches of the build this pgdyno does not have."""
    with pytest.raises(InstallationError) as caught:
        try_again(MANIFEST.name, source)
    assert caught.value.message == f"{MANIFEST.name} was built with patches that differ from this pgdyno's"
    return caught.value.detail


@needs_make
def test_a_plain_build_is_held_against_nothing(
    install_build: Callable[[Manifest], Path], source: SimpleNamespace
) -> None:
    install_build(replace(PLAIN, verified=None))
    references = []

    def passed(subject: Any, *_: object) -> Verified:
        references.append(subject.reference)
        return AGAIN

    try_again(PLAIN.name, source, passed)
    assert references == [None]


@pytest.mark.parametrize(
    "other", [replace(PLAIN, verified=None), replace(PLAIN, configure=("--with-lz4",)), None]
)
def test_without_a_plain_build_of_the_same_source_nothing_is_compared(
    install_build: Callable[[Manifest], Path], other: Manifest | None, source: SimpleNamespace
) -> None:
    prefix = install_build(MANIFEST)
    if other is not None:
        install_build(other)
    with pytest.raises(InstallationError) as caught:
        try_again(MANIFEST.name, source)
    assert caught.value.message == "no plain build exists to verify built-00000000000a against"
    assert (
        caught.value.hint
        == "pgdyno build --source debian:18 --recipe o2 makes one; add --like if it was used before"
    )
    assert read_manifest(prefix).value == MANIFEST


@needs_make
def test_one_that_fails_is_not_called_verified_any_more(
    install_build: Callable[[Manifest], Path], source: SimpleNamespace
) -> None:
    prefix = install_build(MANIFEST)
    install_build(PLAIN)

    with pytest.raises(InstallationError, match="failed its own"):
        try_again(MANIFEST.name, source)
    assert read_manifest(prefix).value == replace(MANIFEST, verified=None)


def test_another_source_is_no_ground_to_judge_by(
    install_build: Callable[[Manifest], Path], source: SimpleNamespace
) -> None:
    install_build(MANIFEST)
    source.sha256, source.version = "cd", "18.7"
    with pytest.raises(InstallationError) as caught:
        try_again(MANIFEST.name, source)
    assert caught.value.message == (
        'the source of built-00000000000a, "debian:18", has changed since the build'
    )
    assert caught.value.detail == "now PostgreSQL 18.7, sha256 cd; it was 18.6, ab"


@needs_make
def test_tests_that_cannot_be_compiled_say_nothing_of_the_build(
    install_build: Callable[[Manifest], Path], source: SimpleNamespace
) -> None:
    prefix = install_build(MANIFEST)
    install_build(PLAIN)
    unpack = source.unpack

    def without_tests(tree: Path) -> None:
        unpack(tree)
        (tree / "src/test/regress/Makefile").unlink()

    source.unpack = without_tests
    with pytest.raises(InstallationError, match='"make" failed with status 2'):
        try_again(MANIFEST.name, source)
    assert read_manifest(prefix).value == MANIFEST


def test_what_tests_are_compiled_with_is_named_if_it_is_missing(
    install_build: Callable[[Manifest], Path], monkeypatch: pytest.MonkeyPatch, source: SimpleNamespace
) -> None:
    install_build(replace(MANIFEST, configure=("--with-icu", "CC=clang-1", "CFLAGS=-O2")))
    monkeypatch.setattr(prerequisites, "is_installed", lambda program: program != "flex")
    with pytest.raises(InstallationError) as caught:
        try_again("built", source)
    assert caught.value.detail == "missing: clang-1, flex"


@needs_make
def test_what_a_package_has_brought_is_tried_and_not_changed(
    packaged_builds: Path,
    install_build: Callable[[Manifest], Path],
    monkeypatch: pytest.MonkeyPatch,
    source: Any,
) -> None:
    prefix = put_build(packaged_builds, MANIFEST)
    install_build(PLAIN)
    by_given = partial(verify_build, verify=lambda *_: AGAIN, fetch=lambda *_: source)
    monkeypatch.setattr(verify_again, "verify_build", by_given)
    done = CliRunner().invoke(command, ["verify", MANIFEST.name, "--json"])
    assert json.loads(done.stdout)["prefix"] == str(prefix)
    assert json.loads(done.stdout)["server"]["verified"]["seconds"] == 150.0
    assert read_manifest(prefix).value == MANIFEST

    said = Remembered()
    with pytest.raises(InstallationError, match="failed its own"):
        try_again(MANIFEST.name, source, said=said)
    assert said.steps[-1] == "plans still choose it until apt-get remove pgdyno-postgresql-18-00000000000a"
    assert read_manifest(prefix).value == MANIFEST
