"""What a build is made with, and when two are the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.builds.compilers.clang import Clang
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.compiling.build_plan import BuildPlan
from pgdyno.builds.optimise.bolt import Bolt
from pgdyno.builds.patching.patches import Patch
from pgdyno.builds.source.extensions import Extensions, ExtensionTree
from pgdyno.builds.spec.configure_options import plan_options
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import parse_recipe

COUNTS = Path("/var/counts")
OBJECTS = Path("/var/objects")
CONFIGURE = plan_options((18,), ("zstd.h",), "gcc", "", wants_liburing=False)


def plan(recipe: str = "pgo+lto", target: str | None = "native") -> BuildPlan:
    return BuildPlan(
        source_sha256="ab" * 32,
        version="18.6",
        recipe=parse_recipe(recipe),
        compiler=Clang("-19"),
        compiler_version="Debian clang version 19.1.7",
        target=target,
        machine="x86_64",
        configure=CONFIGURE,
        training=("sysbench-read-only",),
    )


def option(build: BuildPlan, name: str) -> list[str]:
    (found,) = (one.removeprefix(f"{name}=") for one in build.options if one.startswith(f"{name}="))
    return found.split()


def test_results_stay_the_same_and_hardening_is_kept() -> None:
    build = plan()
    assert option(build, "CFLAGS") == [
        "-O3", "-ffp-contract=off", "-fstack-protector-strong", "-fPIE", "-march=native",
    ]  # fmt: skip
    assert option(build, "CPPFLAGS") == ["-D_FORTIFY_SOURCE=2"]
    assert option(build, "LDFLAGS") == ["-Wl,-z,relro", "-Wl,-z,now", "-fuse-ld=lld"]
    assert option(build, "LDFLAGS_EX") == ["-pie"]
    assert option(build, "CC") == ["clang-19"]
    assert "--with-zstd" in build.options
    assert "--without-icu" in build.options


def test_the_program_that_counts_and_the_one_that_is_installed() -> None:
    counting, final = plan().counting(COUNTS), plan().final(COUNTS, OBJECTS)
    assert counting["PROFILE"] == "-fprofile-generate=/var/counts"
    assert counting["enable_coverage"] == "yes"
    assert final["PROFILE"].split() == [
        "-fprofile-use=/var/counts/merged.profdata", "-Wno-profile-instr-unprofiled",
        "-Wno-profile-instr-out-of-date", "-flto=thin",
    ]  # fmt: skip
    assert (final["AR"], final["RANLIB"], final["NM"]) == ("llvm-ar-19", "llvm-ranlib-19", "llvm-nm-19")
    assert "enable_coverage" not in final


def test_a_plain_build_has_neither() -> None:
    assert set(plan("o2", None).final(COUNTS, OBJECTS)) == {"rpathdir"}
    assert option(plan("o2", None), "CFLAGS")[0] == "-O2"
    assert not any(flag.startswith("-march") for flag in option(plan("o2", None), "CFLAGS"))


@pytest.mark.parametrize("recipe", ["o2", "pgo+lto"])
def test_installations_find_their_libraries_wherever_they_are(recipe: str) -> None:
    assert plan(recipe).final(COUNTS, OBJECTS)["rpathdir"] == "$$ORIGIN/../lib:$$ORIGIN/.."


def test_a_build_is_called_by_all_that_goes_into_it() -> None:
    first = plan()
    others = [
        replace(first, source_sha256="cd" * 32),
        replace(first, recipe=parse_recipe("pgo")),
        replace(first, compiler_version="Debian clang version 19.1.8"),
        replace(first, target="x86-64-v3"),
        replace(first, training=("pgbench-tpcb",)),
        replace(first, training=("sysbench-read-only:jit=off",)),
        replace(first, configure=plan_options((18,), (), "gcc", "", wants_liburing=False)),
        replace(first, extensions=Extensions(("hstore",))),
        replace(first, extensions=Extensions((), (ExtensionTree("vector", Path("/v"), "ab"),))),
        replace(first, extensions=Extensions((), (ExtensionTree("vector", Path("/v"), "cd"),))),
    ]
    assert len({first.name, *(other.name for other in others)}) == 11
    assert re.fullmatch("built-[0-9a-f]{12}", first.name)
    assert plan().name == first.name


def test_builds_of_before_the_recipe_was_called_so_keep_their_names() -> None:
    # as commit 0ed6cd1 named them
    assert (plan().name, plan("o2", None).name) == ("built-4b9915ebea25", "built-9b5be8291433")


def test_patches_are_in_the_name_by_name_and_text_and_in_what_the_server_says_of_itself() -> None:
    one, other = (Patch(name, 18, "t", "i", "18.6", "v", "ab", ()) for name in ("first", "second"))
    build = replace(plan(), patches=(one,))
    others = [
        plan(),
        replace(build, patches=(one, other)),
        replace(build, patches=(replace(one, sha256="cd"),)),
    ]
    assert len({build.name, *(another.name for another in others)}) == 4
    assert replace(build, patches=(replace(one, verdict="better"),)).name == build.name
    assert option(replace(build, patches=(one, other)), "PGDYNO_PATCHES") == ["first,second"]
    assert not any("PATCHES" in one for one in plan().options)


def test_what_a_plain_build_would_have_been_trained_on_makes_no_difference() -> None:
    assert plan("o3").name == replace(plan("o3"), training=()).name


def test_what_bolt_rearranges_is_linked_for_it_and_is_another_build() -> None:
    bolt = Bolt(Path("/usr/lib/llvm-19/bin/llvm-bolt"), "19.1.7")
    build = replace(plan("pgo+lto+bolt"), bolt=bolt)
    assert option(build, "LDFLAGS_EX") == ["-pie", "-Wl,--emit-relocs"]
    assert "-fno-reorder-blocks-and-partition" not in option(build, "CFLAGS")
    with_gcc = replace(build, compiler=Gcc())
    assert "-fno-reorder-blocks-and-partition" in option(with_gcc, "CFLAGS")
    newer = replace(build, bolt=replace(bolt, version="21.1.0"))
    assert len({plan().name, build.name, newer.name, with_gcc.name}) == 4


def test_code_on_huge_pages_is_a_matter_of_linking_the_server_alone() -> None:
    build = plan("pgo+lto+hugetext")
    final = build.final(COUNTS, OBJECTS)
    aligned = "-Wl,-z,max-page-size=0x200000 -Wl,-z,separate-code /var/objects/huge_text.o"
    assert final["LDFLAGS_EX_BE"] == f"-Wl,--export-dynamic {aligned}"  # 16 and later
    assert final["export_dynamic"] == f"-Wl,-E {aligned}"
    assert "LDFLAGS_EX" not in final
    for variables in (build.counting(COUNTS), plan().final(COUNTS, OBJECTS)):
        assert not {"LDFLAGS_EX_BE", "export_dynamic"} & set(variables)
    assert build.name != plan().name


def test_on_arm_a_cpu_is_named_by_another_flag() -> None:
    build = replace(plan(target="neoverse-n1"), machine="aarch64")
    assert "-mcpu=neoverse-n1" in option(build, "CFLAGS")
    assert "-march=neoverse-n1" not in option(build, "CFLAGS")


def test_on_arm_code_for_every_cpu_asks_the_cpu_for_its_atomics() -> None:
    build = replace(plan("o2", None), machine="aarch64")
    assert option(build, "CFLAGS")[-1] == "-moutline-atomics"
    assert "-moutline-atomics" not in option(replace(build, target="neoverse-n1"), "CFLAGS")


def test_for_another_machine_it_is_another_build() -> None:
    foreign = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
    build = replace(plan("o2", None), machine="aarch64", foreign=foreign, compiler=Clang("-19", foreign))
    assert option(build, "CC") == ["clang-19", "--target=aarch64-linux-gnu"]
    assert set(foreign.options) < set(build.options)
    assert build.is_plain
    assert build.name != plan("o2", None).name


def test_hardening_is_dropped_only_where_that_is_asked_for() -> None:
    build = plan("pgo+lto+unhardened")
    assert option(build, "CFLAGS") == [
        "-O3", "-ffp-contract=off", "-fno-stack-protector", "-march=native",
    ]  # fmt: skip
    for variables in (
        build.counting(COUNTS),
        build.final(COUNTS, OBJECTS),
        plan("o2+unhardened").final(COUNTS, OBJECTS),
    ):
        assert "-fno-pie" in variables["PROFILE"].split()
    assert not any(one.startswith("CPPFLAGS") for one in build.options)
    assert option(build, "LDFLAGS_EX") == ["-no-pie"]
    assert option(build, "LDFLAGS") == ["-Wl,-z,relro", "-Wl,-z,now", "-fuse-ld=lld"]
    assert build.name != plan().name
