"""Builds for another machine: never chosen, never measured, never put in the place of a server in use."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fix_builds import MANIFEST
from tests.fix_progress import Remembered

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.builds.built_servers import find_baseline_build, find_build, known_builds
from pgdyno.builds.product.manifest import Manifest, dump_manifest, parse_manifest
from pgdyno.builds.servers import diff_builds, list_builds, list_servers
from pgdyno.cli.build import command
from pgdyno.measure.arenas import opening
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.workspace import Workspace

Install = Callable[[Manifest], Path]
FOREIGN = "aarch64" if platform.machine() != "aarch64" else "x86_64"
OTHER = replace(MANIFEST, name="built-0000000000ff", machine=FOREIGN)
EMULATED = Installation(Path("/opt/pg/bin"), "18.6", 18, "built-0000000000ff", FOREIGN)
HEADER = (
    b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00" + (b"\xb7\x00" if FOREIGN == "aarch64" else b"\x3e\x00")
) + bytes(44)  # a header of 64 bytes


@pytest.fixture
def install_other(install_build: Install) -> Install:
    """Put a build into the workspace whose program is for another machine, and for no emulator here."""

    def installed(manifest: Manifest) -> Path:
        prefix = install_build(manifest)
        (prefix / "bin/postgres").write_bytes(HEADER)
        return prefix

    return installed


def test_a_plan_does_not_choose_it(
    install_build: Install, install_other: Install, builds_place: Workspace
) -> None:
    assert MANIFEST.verified is not None
    emulated = replace(MANIFEST.verified, is_emulated=True)
    install_other(OTHER)
    install_build(replace(MANIFEST, verified=emulated))  # brought by a package to the machine that it is for
    assert known_builds(builds_place, Path("/elsewhere/bin")) == ()
    said = "verified, emulated: 353 of PostgreSQL's own tests, 40 crashes, "
    assert said in CliRunner().invoke(command, ["list"]).output


def test_it_is_listed_with_its_machine_and_does_not_become_the_newest(
    install_build: Install, install_other: Install, builds_place: Workspace
) -> None:
    os.utime(install_build(MANIFEST), (1_000_000, 1_000_000))
    install_other(OTHER)
    assert [one.manifest.name for one in list_builds()] == [OTHER.name, MANIFEST.name]
    assert (
        f"{OTHER.name}   18.6     debian:18, for {FOREIGN}, " in CliRunner().invoke(command, ["list"]).output
    )
    assert find_build("built", builds_place)[1].name == MANIFEST.name
    assert find_installation("built", builds_place).bin_directory.parent.name == MANIFEST.name
    assert [(one.what, one.second) for one in diff_builds(MANIFEST.name, OTHER.name)] == [
        ("machine", FOREIGN)
    ]


def test_alone_it_is_not_the_newest_either(install_other: Install, builds_place: Workspace) -> None:
    install_other(OTHER)
    with pytest.raises(UsageError) as caught:
        find_build("built", builds_place)
    assert caught.value.detail == f"existing builds: {OTHER.name}"
    assert "built" not in {one.name for one in list_servers()}


def test_where_nothing_emulates_it_that_is_the_reason(install_other: Install) -> None:
    install_other(OTHER)
    listed = {one.name: one for one in list_servers()}[OTHER.name]
    assert listed.version is None
    assert listed.failure == (
        f"it is for {FOREIGN}: this needs its libraries and an emulator registered in binfmt_misc"
    )


def test_its_speed_is_not_measured(monkeypatch: pytest.MonkeyPatch, builds_place: Workspace) -> None:
    assert builds_place.root.is_dir()
    monkeypatch.setattr(opening, "find_installation", lambda *_: EMULATED)
    variants = [Variant("plain", server=EMULATED.name)]
    with (
        pytest.raises(RefusedError) as caught,
        open_scratch_arena(None, variants, Remembered(), is_isolated=False),
    ):
        pytest.fail("it was opened")
    assert str(caught.value) == (
        "built-0000000000ff cannot be measured here: it runs under an emulator\n"
        f"DETAIL:  its programs are for {FOREIGN}: their speed here is the emulator's\n"
        "HINT:  measure it on such a machine; pgdyno build deb makes a package for it"
    )


def test_what_it_is_held_against_is_for_the_same_machine(
    install_build: Install, install_other: Install, builds_place: Workspace
) -> None:
    assert MANIFEST.optimised is not None
    plain = replace(MANIFEST.optimised, recipe="o2", target=None)
    install_build(replace(MANIFEST, optimised=plain, configure=("--with-icu",)))
    asked = ("--with-icu", "--host=aarch64-linux-gnu")
    assert find_baseline_build(MANIFEST.tarball_sha256, asked, builds_place) is None
    install_build(replace(OTHER, optimised=plain, configure=asked))
    found = find_baseline_build(MANIFEST.tarball_sha256, asked, builds_place)
    assert found is not None
    assert found.name == OTHER.name


def test_what_an_older_pgdyno_has_built_is_for_this_machine() -> None:
    written = json.loads(dump_manifest(MANIFEST))
    del written["machine"]
    assert parse_manifest(json.dumps(written)) == MANIFEST
    assert MANIFEST.machine == platform.machine()


assert MANIFEST.optimised is not None
PLAIN = replace(
    MANIFEST, name="built-0000000000ff", optimised=replace(MANIFEST.optimised, recipe="o2", target=None)
)  # fmt: skip
SOURCE = MANIFEST.tarball_sha256


def found(place: Workspace, *options: str) -> str | None:
    server = find_baseline_build(SOURCE, options, place)
    return None if server is None else server.name


@pytest.mark.parametrize("built", [("--with-icu",), ("--with-icu", "--with-liburing")])
@pytest.mark.parametrize("asked", [("--with-icu",), ("--with-icu", "--with-liburing")])
def test_liburing_makes_no_difference(
    built: tuple[str, ...],
    asked: tuple[str, ...],
    install_build: Callable[[Manifest], Path],
    builds_place: Workspace,
) -> None:
    install_build(replace(PLAIN, configure=(*built, "CFLAGS=-O2")))
    assert found(builds_place, *asked, "CFLAGS=-O3") == PLAIN.name


@pytest.mark.parametrize("asked", ["--without-icu", "--disable-float8-byval", "--enable-nls"])
def test_another_feature_does(
    asked: str, install_build: Callable[[Manifest], Path], builds_place: Workspace
) -> None:
    install_build(replace(PLAIN, configure=("--enable-option-checking=fatal",)))
    assert found(builds_place) == PLAIN.name
    assert found(builds_place, asked) is None
