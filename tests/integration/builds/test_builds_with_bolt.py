"""BOLT rearranges a build when it is compiled, where it is there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import STAGES, build, interrupted, request, stages_of, unfetched

from pgdyno.base.errors import InstallationError
from pgdyno.builds.optimise import bolt
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation

REARRANGED = [*STAGES[:5], "make it count branches", "train on branches", "rearrange", *STAGES[5:]]


@pytest.fixture
def bolted(monkeypatch: pytest.MonkeyPatch) -> None:
    """BOLT is there, and content with a program of two functions."""
    if bolt.find_bolt() is None:
        pytest.skip(f"needs BOLT: apt-get install {bolt.PACKAGE}")
    monkeypatch.setattr(bolt, "LEAST_FUNCTIONS", 1)


@pytest.mark.usefixtures("plain", "bolted")
@pytest.mark.parametrize("at", [None, *REARRANGED[5:9]])
def test_bolt_rearranges_what_is_compiled_and_what_is_tested_is_that(at: str | None, tree: Path) -> None:
    if at is not None:
        with interrupted(at), pytest.raises(KeyboardInterrupt):
            build(request(tree, "pgo+bolt"), Remembered())
    said = Remembered()
    manifest = build(request(tree, "pgo+bolt"), said)
    stages = stages_of(said)
    assert stages == REARRANGED[0 if at is None else REARRANGED.index(at) :]
    assert manifest.optimised is not None
    assert manifest.optimised.rearranged is not None
    assert manifest.optimised.rearranged.functions >= 1
    program = find_installation(manifest.name, workspace()).program("postgres")
    sections = subprocess.run(["readelf", "-S", program], capture_output=True, text=True, check=True).stdout
    assert ".note.bolt_info" in sections
    assert b"__bolt_instr" not in Path(program).read_bytes()


def test_without_bolt_its_package_is_named_before_anything_is_fetched(tree: Path) -> None:
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "pgo+bolt"), Remembered(), fetch=unfetched, find_bolt=lambda: None)
    assert caught.value.detail == "missing: llvm-bolt"
    assert caught.value.hint == "apt-get install bolt-19"


@pytest.mark.usefixtures("bolted")
def test_bolt_takes_more_memory_than_compilers(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "pgo+bolt"), Remembered(), available_memory_bytes=lambda: 2_000_000_000)
    assert caught.value.detail == (
        "needed 2.73\xa0GB, available 1.86\xa0GB: 500\xa0MB for a server, 2.25\xa0GB for BOLT"
    )


@pytest.mark.usefixtures("plain")
def test_the_strongest_without_bolt_says_that_it_is_without(tree: Path) -> None:
    said = Remembered()
    manifest = build(request(tree, "auto"), said, find_bolt=lambda: None)
    assert said.steps[0] == "without BOLT: bolt-19 is not installed"
    assert manifest.optimised is not None
    assert manifest.optimised.recipe == "lto+pgo"
