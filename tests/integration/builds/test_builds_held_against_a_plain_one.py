"""A build is held against a plain one of the same source, and not installed if it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import MAIN, STAGES, VERIFIED, build, request, stages_of

from pgdyno.base.errors import InstallationError
from pgdyno.builds import stages as build_stages
from pgdyno.builds.make import Making
from pgdyno.builds.product.manifest import FILE, Manifest, Verified, dump_manifest, read_manifest
from pgdyno.builds.servers import list_servers
from pgdyno.builds.verifying.verification import Candidate
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation


def test_a_plain_build_of_the_same_source_is_made_first(tree: Path) -> None:
    subjects: list[Candidate] = []

    def remember(subject: Candidate, *_: object) -> Verified:
        subjects.append(subject)
        return VERIFIED

    said = Remembered()
    manifest = build(request(tree, "lto"), said, verify=remember)
    first, second = subjects
    assert first.reference is None
    assert second.reference is not None
    assert second.reference.name == first.tested.name
    reference = first.tested.name
    assert f"reference for verification: {reference}, a baseline build of the same source" in said.steps
    assert read_plain(first.tested.name) == ("o2", None)
    assert (second.tested.name, manifest.verified) == (manifest.name, VERIFIED)
    assert second.tested.bin_directory.parent.name == f".{manifest.name}.partial"


def test_time_left_of_a_plain_build_is_also_that_of_what_follows(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[float]] = []

    class Telling:
        def __init__(self, _: object, found: float) -> None:
            told.append([found])  # the source is unpacked before

        def report(self, share: float) -> None:
            told[-1].append(share)

    compiling = Making.build

    def compile_all(making: Making, *arguments: Any) -> None:
        arguments[-1](1.0)
        compiling(making, *arguments)

    monkeypatch.setattr(build_stages, "TimeLeft", Telling)
    monkeypatch.setattr(Making, "build", compile_all)
    said = Remembered()
    build(request(tree, "lto"), said)
    plain, faster = told
    assert (plain[-1], faster[-1]) == (0.5, 1.0)  # both have the same stages, which take as long
    assert plain[0] == pytest.approx(5 / 656 / 2)
    assert faster[0] == pytest.approx(5 / 656)
    # 5 s to unpack, 30 to configure, 340 to compile, 280 to verify, one to install: 656 for each of them.
    assert pytest.approx((5 + 30 + 340) / 656 / 2) in plain
    assert pytest.approx((5 + 30 + 340 / 2) / 656) in faster  # it is still to be linked
    assert len(said.steps) == len(set(said.steps))  # nothing is said twice


def read_plain(name: str) -> tuple[str, str | None] | None:
    manifest = read_manifest(workspace().servers() / name).value
    assert isinstance(manifest, Manifest)
    return None if manifest.optimised is None else (manifest.optimised.recipe, manifest.optimised.target)


def test_another_source_is_held_against_a_plain_build_of_its_own(tree: Path, plain: str) -> None:
    (tree / "main.c").write_text(MAIN + "/* changed */\n")
    said = Remembered()
    build(request(tree, "lto"), said)
    assert "first a baseline build of the same source, to verify the optimised build against" in said.steps
    assert not any(plain in line for line in said.steps)


@pytest.mark.usefixtures("plain")
def test_what_fails_verification_is_not_installed_and_can_be_tried_again(tree: Path) -> None:
    def fail(*_: object) -> Verified:
        raise InstallationError("PostgreSQL 18.6 failed its own tests: regress")

    with pytest.raises(InstallationError, match="failed its own tests"):
        build(request(tree), Remembered(), verify=fail)
    assert (
        len([server for server in list_servers() if server.name.startswith("built-")]) == 1
    )  # the plain one
    said = Remembered()
    manifest = build(request(tree), said)
    assert stages_of(said) == STAGES[-2:]
    assert find_installation(manifest.name, workspace()).version == "18.6"


def test_a_build_that_has_failed_later_is_not_given_out_as_one_that_is_there(tree: Path, plain: str) -> None:
    prefix = workspace().servers() / plain
    manifest = read_manifest(prefix).value
    assert isinstance(manifest, Manifest)
    (prefix / FILE).write_text(dump_manifest(replace(manifest, verified=None)))
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "o2"), Remembered())
    assert str(caught.value) == (
        f"{plain} exists but cannot be trusted\nDETAIL:  its last verification failed\n"
        f"HINT:  pgdyno build verify {plain} verifies it again; or remove {prefix} and build again"
    )
