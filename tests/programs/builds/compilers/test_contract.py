"""Which flags and programs a recipe takes with each compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.own_path import set_own_path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compilers.clang import Clang
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs.find_compiler import find_compiler
from pgdyno.builds.spec.foreign import Foreign
from pgdyno.model.plans.recipe import parse_recipe


def programs(directory: Path, *names: str) -> None:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)


AARCH64 = Foreign("aarch64", "aarch64-linux-gnu", "arm64")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but what a test puts there."""
    directory = tmp_path / "bin"
    set_own_path(monkeypatch, directory)
    return directory


def test_for_another_machine_clang_is_told_so_and_gcc_is_another_program() -> None:
    clang, gcc = Clang("-19", AARCH64), Gcc("-12", AARCH64)
    assert (clang.program, clang.cc) == ("clang-19", "clang-19 --target=aarch64-linux-gnu")
    assert dict(clang.needs(parse_recipe("o2"))) == {
        "ld.lld-19": "lld-19",
        "llvm-ar-19": "llvm-19",
        "llvm-ranlib-19": "llvm-19",
        "llvm-nm-19": "llvm-19",
        "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    }
    assert clang.make_variables(parse_recipe("o2"))["AR"] == "llvm-ar-19"
    assert clang.counting_package == "libclang-rt-19-dev:arm64"
    assert (gcc.program, gcc.cc, gcc.package) == (
        "aarch64-linux-gnu-gcc-12", "aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu",
    )  # fmt: skip
    assert gcc.needs(parse_recipe("lto")) == {
        f"aarch64-linux-gnu-gcc-{name}-12": "gcc-12-aarch64-linux-gnu" for name in ("ar", "ranlib", "nm")
    }
    assert gcc.make_variables(parse_recipe("lto"))["AR"] == "aarch64-linux-gnu-gcc-ar-12"
    assert gcc.make_variables(parse_recipe("o2")) == {}  # configure finds those that are named like it


def test_the_compiler_of_another_machine_is_found_and_named_with_its_packages(path: Path) -> None:
    programs(path, "gcc", "gcc-14")
    with pytest.raises(InstallationError) as caught:
        find_compiler("gcc", parse_recipe("o2"), AARCH64)
    assert str(caught.value) == (
        "PostgreSQL cannot be built for aarch64 on this host yet\n"
        "DETAIL:  missing: aarch64-linux-gnu-gcc\n"
        "HINT:  dpkg --add-architecture arm64 && apt-get update && apt-get install gcc-aarch64-linux-gnu"
    )
    programs(path, "aarch64-linux-gnu-gcc-12")
    assert find_compiler("gcc", parse_recipe("o2"), AARCH64) == Gcc("-12", AARCH64)
    programs(path, "aarch64-linux-gnu-gcc", "clang-19", "ld.lld-19")
    assert find_compiler("gcc", parse_recipe("o2"), AARCH64) == Gcc("", AARCH64)
    assert find_compiler("auto", parse_recipe("o2"), AARCH64) == Gcc("", AARCH64)
    programs(path, "llvm-ar-19", "llvm-ranlib-19", "llvm-nm-19")
    assert find_compiler("auto", parse_recipe("o2"), AARCH64) == Clang("-19", AARCH64)
