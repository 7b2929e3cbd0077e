"""Builds for another machine go through the same stages, where this host has a compiler and an emulator."""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import STAGES, build, request, unfetched

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs import prerequisites
from pgdyno.builds.servers import list_servers
from pgdyno.builds.spec.foreign import Foreign, require_runs
from pgdyno.host.processes import running as programs
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation

AARCH64 = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
LOADER = Path("/lib/ld-linux-aarch64.so.1")  # of libc6:arm64


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that builds programs for Arm, and runs them."""
    if not LOADER.exists():
        # The C library that comes with the compiler does for the small program, which takes no other.
        monkeypatch.setenv("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu")
        kept = (*programs._KEPT_VARIABLES, "QEMU_LD_PREFIX")
        monkeypatch.setattr(programs, "_KEPT_VARIABLES", kept)
        monkeypatch.setattr(prerequisites, "HEADERS", prerequisites.HEADERS[:1])
    if platform.machine() == AARCH64.machine or shutil.which(Gcc("", AARCH64).program) is None:
        pytest.skip(f"needs a compiler for another machine: apt-get install {Gcc('', AARCH64).package}")
    try:
        require_runs(AARCH64, Gcc("", AARCH64).cc, (), tmp_path)
    except InstallationError as error:
        pytest.skip(f"{error.detail}: {error.hint}")


@pytest.mark.usefixtures("emulated")
def test_a_build_for_another_machine_goes_through_the_same_stages(tree: Path) -> None:
    said = Remembered()
    manifest = build(replace(request(tree, "auto"), machine="aarch64"), said)
    assert said.steps[0] == (
        "without BOLT: its instrumentation runtime supports only programs for this machine"
    )
    assert "first a baseline build of the same source, to verify the optimised build against" in said.steps
    stages = [line.partition(": ")[2] for line in said.steps if line.startswith(f"{manifest.name}: ")]
    assert stages == STAGES
    done = manifest.optimised
    assert done is not None
    assert (manifest.machine, done.recipe, done.target) == ("aarch64", "lto+pgo", None)
    assert {"-moutline-atomics", "-fprofile-use"} < set(done.common_flags)
    assert done.atomics == "0 inline, 0 in helpers that ask the CPU for them first"  # it does none
    found = find_installation(manifest.name, workspace())
    assert (found.version, found.foreign_machine) == ("18.6", "aarch64")
    assert [one for one in list_servers() if one.name == "built"] == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="for a host that Arm is foreign to")
def test_what_cannot_be_had_for_another_machine_is_refused_before_anything_is_fetched(tree: Path) -> None:
    foreign = replace(request(tree), machine="aarch64")
    for asked, message in (
        (replace(foreign, recipe="pgo+bolt"), '--recipe "pgo+bolt" is not possible for --machine aarch64'),
        (
            replace(foreign, target="native"),
            "native means this CPU, but --machine aarch64 is a different architecture",
        ),
        (replace(foreign, like="/usr/lib/postgresql/18"), "--like cannot be used with --machine aarch64"),
        (replace(foreign, machine="vax"), '--machine "vax" is not supported'),
    ):
        with pytest.raises(UsageError) as caught:
            build(asked, Remembered(), fetch=unfetched)
        assert caught.value.message == message
