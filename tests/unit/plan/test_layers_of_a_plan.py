"""A plan's layers one after the other, and the builds it may choose from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_builds import MANIFEST

from pgdyno.accelerate.planning import _layer_by_layer
from pgdyno.builds.built_servers import known_builds
from pgdyno.builds.product.manifest import Manifest
from pgdyno.model.plans.plan import KERNEL, SERVER, SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.postgres.process.workspace import Workspace


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


KNOWN = KnownBuild("built-00000000000a", "18.6", "clang 19", "lto+pgo", ("sysbench-read-only",), 353)


def test_only_what_is_optimised_verified_and_released_can_be_chosen(
    builds_place: Workspace, install_build: Callable[[Manifest], Path]
) -> None:
    assert MANIFEST.verified is not None
    plain = replace(MANIFEST.verified, reference="")
    install_build(MANIFEST)
    install_build(replace(MANIFEST, name="built-00000000000c", verified=None))
    install_build(replace(MANIFEST, name="built-00000000000d", verified=plain))
    install_build(replace(MANIFEST, name="built-00000000000e", server_version="19devel"))
    assert MANIFEST.optimised is not None
    unhardened = replace(MANIFEST.optimised, recipe="lto+pgo+unhardened")
    install_build(replace(MANIFEST, name="built-00000000000f", optimised=unhardened))
    patched = replace(MANIFEST.optimised, recipe="lto+pgo+patched")
    install_build(replace(MANIFEST, name="built-000000000010", optimised=patched))
    install_build(replace(MANIFEST, name="source-18", optimised=None))
    assert known_builds(builds_place, Path("/elsewhere/bin")) == (KNOWN,)
    chosen = known_builds(builds_place, Path("/elsewhere/bin"), accepts_patches=True)
    assert {one.name: one.is_patched for one in chosen} == {KNOWN.name: False, "built-000000000010": True}
    assert max(chosen, key=lambda one: one.strength).is_patched


@pytest.mark.parametrize("recipe", ["lto+pgo", "lto+pgo+unhardened"])
def test_from_a_build_only_newer_ones_are_a_step_forward(
    recipe: str, builds_place: Workspace, install_build: Callable[[Manifest], Path]
) -> None:
    assert MANIFEST.optimised is not None
    optimised = replace(MANIFEST.optimised, recipe=recipe)
    older = install_build(replace(MANIFEST, name="built-00000000000b"))
    in_use = install_build(replace(MANIFEST, name="built-00000000000c", optimised=optimised))
    newer = install_build(MANIFEST)
    for prefix, at in ((older, 1_000_000), (in_use, 2_000_000), (newer, 3_000_000)):
        os.utime(prefix, (at, at))
    assert known_builds(builds_place, in_use / "bin") == (KNOWN,)
    assert known_builds(builds_place, newer / "bin") == ()
