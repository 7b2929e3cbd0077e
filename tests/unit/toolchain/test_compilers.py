"""Which flags and programs a profile takes with each compiler, and how a real one takes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.build import parse_profile
from pgdyno.model.errors import InstallationError
from pgdyno.toolchain.compilers._contract import Compiler
from pgdyno.toolchain.compilers.clang import Clang
from pgdyno.toolchain.compilers.gcc import Gcc
from pgdyno.toolchain.counts import gather, reached
from pgdyno.toolchain.find_compiler import _can_count, find_compiler

FORKS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int likely(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i; return sum; }
static int never(int n) { return n * 3; }
int main(int argc, char **argv) {
    for (int child = 0; child < 4; child++)
        if (fork() == 0) exit(likely(1000) == 499500 ? 0 : 1);
    for (int child = 0; child < 4; child++) wait(0);
    return argc > 5 ? never(argc) : 0;
}
"""


def programs(directory: Path, *names: str) -> None:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)


@pytest.fixture(params=(Gcc(), Clang("-19")), ids=lambda one: one.program)
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """Each compiler with all that a trained build takes."""
    found: Compiler = request.param
    needed = {found.program: found.program, **found.needs(parse_profile("pgo+lto"))}
    if any(shutil.which(program) is None for program in needed) or not _can_count(found):
        packages = dict.fromkeys([*needed.values(), found.counting_package])
        pytest.skip(f"needs {found.program} with all it takes: apt-get install {' '.join(packages)}")
    return found


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """Where programs put their counts."""
    directory = tmp_path / "counts"
    directory.mkdir()
    return directory


@pytest.fixture
def tree(compiler: Compiler, counts: Path, tmp_path: Path) -> Path:
    """The small program, compiled so that it counts."""
    directory = tmp_path / "tree"
    directory.mkdir()
    (directory / "forks.c").write_text(FORKS)
    build(compiler, directory, compiler.counting(counts))
    return directory


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but what a test puts there."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def test_clang_needs_its_linker_and_what_merges_counts() -> None:
    assert dict(Clang("-19").needs(parse_profile("o2"))) == {"ld.lld-19": "lld-19"}
    assert dict(Clang("-19").needs(parse_profile("pgo+lto"))) == {
        "ld.lld-19": "lld-19",
        "llvm-ar-19": "llvm-19",
        "llvm-ranlib-19": "llvm-19",
        "llvm-nm-19": "llvm-19",
        "llvm-profdata-19": "llvm-19",
    }


def test_the_newest_complete_compiler_is_taken(path: Path) -> None:
    complete = ("ld.lld-18", "llvm-ar-18", "llvm-ranlib-18", "llvm-nm-18", "llvm-profdata-18")
    programs(path, "clang-18", "clang-19", "gcc", *complete)
    assert find_compiler("auto", parse_profile("pgo+lto")) == Clang("-18")
    programs(path, "ld.lld-19")
    assert find_compiler("auto", parse_profile("o3")) == Clang("-19")
    assert find_compiler("gcc", parse_profile("o3")) == Gcc()


def test_without_a_complete_clang_gcc_does_it(path: Path) -> None:
    programs(path, "clang-19", "gcc")
    assert find_compiler("auto", parse_profile("pgo")) == Gcc()


def test_what_is_missing_is_named_with_its_packages(path: Path) -> None:
    programs(path, "clang-19", "ld.lld-19", "llvm-ar-19", "llvm-ranlib-19", "llvm-nm-19")
    with pytest.raises(InstallationError) as caught:
        find_compiler("clang", parse_profile("pgo+lto"))
    assert str(caught.value) == (
        "PostgreSQL cannot be built here yet\n"
        "DETAIL:  missing: llvm-profdata-19\n"
        "HINT:  apt-get install llvm-19"
    )


@pytest.mark.usefixtures("path")
def test_without_any_compiler_one_is_suggested_with_all_it_takes() -> None:
    with pytest.raises(InstallationError) as caught:
        find_compiler("auto", parse_profile("pgo"))
    assert caught.value.hint == "apt-get install clang-19 lld-19 llvm-19"
    with pytest.raises(InstallationError) as caught:
        find_compiler("gcc", parse_profile("pgo"))
    assert caught.value.hint == "apt-get install gcc"


def test_a_program_that_forks_is_counted_and_compiled_for_what_was_counted(
    compiler: Compiler, tree: Path, counts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small program does what a server does: its children run the code, and end on their own."""
    train(compiler, tree, counts)
    be_content_with_little(compiler, counts, monkeypatch)
    gather(compiler, counts, tree, list)
    assert int(reached(compiler, counts, list).split()[0]) >= 1
    said = build(compiler, tree, (*compiler.counted(counts), *compiler.linked_whole()))
    assert "warning" not in said
    assert subprocess.run([tree / "forks"], check=True).returncode == 0
    symbols = subprocess.run(["nm", tree / "forks"], capture_output=True, text=True, check=True).stdout
    assert "__gcov" not in symbols
    assert "__llvm_prf" not in symbols


def test_too_little_training_is_refused(compiler: Compiler, tree: Path, counts: Path) -> None:
    train(compiler, tree, counts)
    with pytest.raises(
        InstallationError, match=r"training has reached \d (functions|object files), too little"
    ):
        gather(compiler, counts, tree, list)


def test_what_runs_besides_the_training_is_not_counted(
    compiler: Compiler, tree: Path, counts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data sets are loaded by the same program, but only where they are not there already."""
    be_content_with_little(compiler, counts, monkeypatch)
    train(compiler, tree, counts)
    gather(compiler, counts, tree, list)
    trained = gathered(tree, counts)
    assert trained
    other = subprocess.run([tree / "forks", *(5 * ["word"])], check=False)
    assert other.returncode == 18  # three times its name and five words: what training never reaches
    gather(compiler, counts, tree, list)
    assert gathered(tree, counts) == trained


def gathered(tree: Path, counts: Path) -> dict[str, bytes]:
    """Return what the compiler will read: gcc's file or clang's."""
    files = (tree / "forks.gcda", counts / "merged.profdata")
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def train(compiler: Compiler, tree: Path, counts: Path) -> None:
    """Run the small program so that what it counts is wanted."""
    subprocess.run([tree / "forks"], env={**os.environ, **compiler.counting_environment(counts)}, check=True)


def be_content_with_little(compiler: Compiler, counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a single unit for enough: no more can be reached in a small program."""
    enough = replace(compiler.coverage(counts), least=1)
    monkeypatch.setattr(type(compiler), "coverage", lambda *_: enough)


def build(compiler: Compiler, tree: Path, flags: tuple[str, ...]) -> str:
    """Compile and link the small program as make does: first its object, then itself."""
    for argv in (["-c", "-o", "forks.o", "forks.c"], ["forks.o", *compiler.linker, "-o", "forks"]):
        done = subprocess.run(
            [compiler.program, "-O2", *flags, *argv], cwd=tree, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return done.stderr
