"""A plan's layers one after the other, and the builds it may choose from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pgdyno.app.known_builds import known_builds
from pgdyno.app.planning import _layer_by_layer
from pgdyno.model.builds import KnownBuild
from pgdyno.model.plan import KERNEL, SERVER, SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.server.account import caller
from pgdyno.server.workspace import Workspace
from pgdyno.toolchain.manifest import (
    FILE,
    Manifest,
    Optimised,
    Passed,
    Trained,
    Verified,
    dump_manifest,
)

MANIFEST = Manifest(
    name="built-00000000000a", server_version="18.6", package="", package_version="", suite="", tarball="",
    tarball_sha256="ab", unpacked="", compiler="clang 19", configure=(), cflags="", extensions=(), notes=(),
    build_s=1.0, installed_at="2026-11-22T00:00:00+00:00",
    optimised=Optimised(
        source="debian:18", profile="lto+pgo", target="native", common_flags=(), other_flags=(),
        linking_flags=(), objects=1, training=(Trained("sysbench-read-only", 40.0),), reached="",
        text_bytes=1,
    ),
    verified=Verified((Passed("regress", 231), Passed("isolation", 122)), "source-18", 63_332, 40, 205.0),
)  # fmt: skip


def line(layer: Layer, kind: str, key: str, value: str) -> PlanLine:
    change = Change("some", kind, key, None, value, Effect.RESTART)
    return PlanLine(change, layer, "", "", Risk.SAFE, "")


def test_layers_add_up_to_the_plan() -> None:
    plan = Plan(
        (
            line(Layer.APPLICATION, SETTING, "work_mem", "8MB"),
            line(Layer.SYSTEM, KERNEL, "/proc/sys/vm/swappiness", "1"),
            line(Layer.COMPILER, SERVER, "server", "built-00000000000a"),
        ),
        (), (), None,
    )  # fmt: skip
    parts = _layer_by_layer(plan)
    assert {name: (part.values, part.server) for name, part in parts.items()} == {
        "application": ({"work_mem": "8MB"}, None),
        "application+system": ({"work_mem": "8MB", "/proc/sys/vm/swappiness": "1"}, None),
        "plan": ({"work_mem": "8MB", "/proc/sys/vm/swappiness": "1"}, "built-00000000000a"),
    }


def test_an_empty_plan_and_one_of_one_layer_have_no_parts() -> None:
    assert list(_layer_by_layer(Plan((), (), (), None))) == ["plan"]
    one = Plan((line(Layer.APPLICATION, SETTING, "work_mem", "8MB"),), (), (), None)
    assert list(_layer_by_layer(one)) == ["plan"]


def install(place: Workspace, manifest: Manifest) -> Path:
    programs = place.servers() / manifest.name / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("")
    (programs.parent / FILE).write_text(dump_manifest(manifest))
    return programs


KNOWN = KnownBuild("built-00000000000a", "18.6", "clang 19", "lto+pgo", ("sysbench-read-only",), 353)


def test_only_what_is_optimised_verified_and_released_can_be_chosen(tmp_path: Path) -> None:
    place = Workspace(tmp_path, caller())
    assert MANIFEST.verified is not None
    plain = replace(MANIFEST.verified, reference="")
    install(place, MANIFEST)
    install(place, replace(MANIFEST, name="built-00000000000c", verified=None))
    install(place, replace(MANIFEST, name="built-00000000000d", verified=plain))
    install(place, replace(MANIFEST, name="built-00000000000e", server_version="19devel"))
    assert MANIFEST.optimised is not None
    unhardened = replace(MANIFEST.optimised, profile="lto+pgo+unhardened")
    install(place, replace(MANIFEST, name="built-00000000000f", optimised=unhardened))
    install(place, replace(MANIFEST, name="source-18", optimised=None))
    assert known_builds(place, tmp_path / "elsewhere/bin") == (KNOWN,)


def test_from_a_build_only_newer_ones_are_a_step_forward(tmp_path: Path) -> None:
    place = Workspace(tmp_path, caller())
    in_use = install(place, replace(MANIFEST, name="built-00000000000b"))
    newer = install(place, MANIFEST)
    for programs, at in ((in_use, 1_000_000), (newer, 2_000_000)):
        os.utime(programs.parent, (at, at))
    assert known_builds(place, in_use) == (KNOWN,)
    assert known_builds(place, newer) == ()
