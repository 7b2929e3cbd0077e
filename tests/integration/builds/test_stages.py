"""A whole build of a small program: what is made, in which order, and what is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_huge_pages import needs_huge_pages
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import MAIN, POSTMASTER, STAGES, build, request, stages_of

from pgdyno.base.errors import InstallationError, SettingError
from pgdyno.builds.optimise.huge_text import moved_bytes
from pgdyno.builds.servers import list_servers
from pgdyno.builds.training_workloads import Lesson
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation


@pytest.mark.usefixtures("plain")
def test_a_build_goes_through_its_stages_and_can_be_named(tree: Path, home: Path) -> None:
    said = Remembered()
    manifest = build(request(tree), said)
    assert stages_of(said) == STAGES
    assert manifest.server_version == "18.6"
    for name in ("built", manifest.name):
        assert find_installation(name, workspace()).version == "18.6"
    assert {server.name for server in list_servers()} >= {"built", manifest.name}
    assert list((home / "builds").glob("built-*")) == []


def test_the_manifest_says_what_was_found_in_the_build(tree: Path) -> None:
    manifest = build(request(tree), Remembered())
    done = manifest.optimised
    assert done is not None
    assert (done.source, done.recipe, done.target, done.objects) == (str(tree), "lto+pgo", "native", 1)
    for flag in ("-O3", "-march=native", "-fprofile-use", "-flto=auto", "-D_FORTIFY_SOURCE=2"):
        assert flag in done.common_flags
    assert "-fprofile-generate" not in done.common_flags
    assert "-Wl,-z,now" in done.linking_flags
    assert done.reached == "1 object files"
    assert done.text_bytes > 0
    assert [one.workload for one in done.training] == [
        "sysbench-read-only", "sysbench-read-write", "sysbench-write-only", "pgbench-tpcb",
    ]  # fmt: skip


def test_nothing_that_counts_is_left_in_what_is_installed(tree: Path) -> None:
    manifest = build(request(tree), Remembered())
    program = find_installation(manifest.name, workspace()).program("postgres")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert "__gcov" not in symbols


@needs_huge_pages
def test_a_server_on_huge_pages_moves_its_code_by_itself(tree: Path) -> None:
    (tree / "main.c").write_text(MAIN + POSTMASTER)
    moved = {}
    for recipe in ("o2", "o2+hugetext"):
        manifest = build(request(tree, recipe), Remembered())
        program = find_installation(manifest.name, workspace()).program("postgres")
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        moved[manifest.optimised and manifest.optimised.recipe] = moved_bytes(said)
    assert moved["o2"] == 0
    assert moved["o2+hugetext"] >= 4 << 20


def test_a_failed_stage_shows_the_compilers_words_and_keeps_the_log(tree: Path) -> None:
    (tree / "main.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "o2"), Remembered())
    assert caught.value.message == 'building PostgreSQL 18.6: "make" failed with status 2'
    assert "error: ‘nothing’ undeclared" in str(caught.value).replace("'nothing'", "‘nothing’")
    assert (caught.value.hint or "").startswith("the whole log is in ")


def test_the_users_tree_is_left_as_it_was(tree: Path) -> None:
    before = sorted(path.relative_to(tree) for path in tree.rglob("*"))
    build(request(tree, "o2"), Remembered())
    assert sorted(path.relative_to(tree) for path in tree.rglob("*")) == before


def test_what_is_there_is_not_built_again(tree: Path) -> None:
    first = build(request(tree), Remembered())
    said = Remembered()
    assert build(request(tree), said) == first
    assert said.steps == [f"{first.name} already exists"]


def test_another_source_is_another_build(tree: Path) -> None:
    first = build(request(tree, "o2"), Remembered())
    (tree / "main.c").write_text(MAIN + "/* changed */\n")
    assert build(request(tree, "o2"), Remembered()).name != first.name


def test_a_build_is_trained_on_what_was_asked_for_and_each_once(tree: Path) -> None:
    asked = replace(request(tree), training=("pgbench-tpcb", "sysbench-read-only", "pgbench-tpcb"))
    done = build(asked, Remembered()).optimised
    assert done is not None
    assert [one.workload for one in done.training] == ["pgbench-tpcb", "sysbench-read-only"]


def test_the_manifest_has_the_settings_of_the_training_and_they_make_another_build(tree: Path) -> None:
    asked = "sysbench-read-only", "sysbench-read-only:plan_cache_mode=force_generic_plan"
    plain, generic = (build(replace(request(tree), training=(one,)), Remembered()) for one in asked)
    assert (plain.training, generic.training) == asked
    assert plain.name != generic.name


@pytest.mark.usefixtures("plain")
def test_settings_are_judged_before_anything_is_compiled_for_them(tree: Path, home: Path) -> None:
    def refuse(judge: Installation, lessons: Sequence[Lesson], _: object) -> None:
        assert judge.version == "18.6"
        raise SettingError(f"no {lessons[0].variant.gucs}")

    said, asked = Remembered(), replace(request(tree), training=("pgbench-tpcb:jit=perhaps",))
    with pytest.raises(SettingError, match=r"no .*perhaps"):
        build(asked, said, check_settings=refuse)
    assert stages_of(said) == ["unpack"]
    assert list((home / "builds").glob("built-*")) == []
