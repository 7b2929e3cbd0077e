"""Which compiler a build takes, and what is missing for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.own_path import set_own_path
from tests.programs.builds.compilers.test_contract import programs

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compilers.clang import Clang
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs.find_compiler import find_compiler
from pgdyno.builds.needs.prerequisites import Need
from pgdyno.model.plans.recipe import parse_recipe


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but what a test puts there."""
    directory = tmp_path / "bin"
    set_own_path(monkeypatch, directory)
    return directory


def test_the_newest_complete_compiler_is_taken(path: Path) -> None:
    complete = ("ld.lld-18", "llvm-ar-18", "llvm-ranlib-18", "llvm-nm-18", "llvm-profdata-18")
    programs(path, "clang-18", "clang-19", "gcc", *complete)
    assert find_compiler("auto", parse_recipe("pgo+lto")) == Clang("-18")
    programs(path, "ld.lld-19")
    assert find_compiler("auto", parse_recipe("o3")) == Clang("-19")
    assert find_compiler("gcc", parse_recipe("o3")) == Gcc()


def test_without_a_complete_clang_gcc_does_it(path: Path) -> None:
    programs(path, "clang-19", "gcc")
    assert find_compiler("auto", parse_recipe("pgo")) == Gcc()


def test_what_is_missing_is_named_with_its_packages(path: Path) -> None:
    programs(path, "clang-19", "ld.lld-19", "llvm-ar-19", "llvm-ranlib-19", "llvm-nm-19")
    with pytest.raises(InstallationError) as caught:
        find_compiler("clang", parse_recipe("pgo+lto"))
    assert str(caught.value) == (
        "PostgreSQL cannot be built on this host yet\n"
        "DETAIL:  missing: llvm-profdata-19\n"
        "HINT:  apt-get install llvm-19"
    )


@pytest.mark.usefixtures("path")
def test_without_any_compiler_one_is_suggested_with_all_it_takes() -> None:
    with pytest.raises(InstallationError) as caught:
        find_compiler("auto", parse_recipe("pgo"))
    assert caught.value.hint == "apt-get install clang-19 lld-19 llvm-19 libclang-rt-19-dev"
    with pytest.raises(InstallationError) as caught:
        find_compiler("gcc", parse_recipe("pgo"))
    assert caught.value.hint == "apt-get install gcc"


@pytest.mark.usefixtures("path")
def test_what_else_is_missing_is_named_with_the_compiler() -> None:
    with pytest.raises(InstallationError) as caught:
        find_compiler("gcc", parse_recipe("pgo"), besides=[Need("llvm-bolt", "bolt-19")])
    assert caught.value.detail == "missing: gcc, llvm-bolt"
    assert caught.value.hint == "apt-get install gcc bolt-19"
