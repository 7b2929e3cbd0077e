"""How real compilers take what a recipe asks for: programs are counted, and compiled for that."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compilers.clang import Clang
from pgdyno.builds.compilers.gcc import Gcc
from pgdyno.builds.needs.find_compiler import _can_count
from pgdyno.builds.spec.foreign import EMULATOR, Foreign
from pgdyno.builds.write_manifest import gather, reached
from pgdyno.model.plans.recipe import parse_recipe
from pgdyno.postgres.inspection.program import read_atomics
from pgdyno.postgres.server import Atomics

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
ATOMIC = """
#include <stdatomic.h>
static _Atomic int counter = 1;
int main(int argc, char **argv) { atomic_fetch_add(&counter, argc); return counter; }
"""
AARCH64 = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
AnyCompiler = Gcc | Clang
CROSS = (Gcc("", AARCH64), Clang("-19", AARCH64))


@pytest.fixture(params=(Gcc(), Clang("-19"), *CROSS), ids=lambda one: one.cc)
def compiler(request: pytest.FixtureRequest) -> AnyCompiler:
    """Each compiler with all that a trained build takes, for this machine and for another one."""
    found: AnyCompiler = request.param
    needed = {found.program: found.package, **found.needs(parse_recipe("pgo+lto"))}
    needed |= dict.fromkeys(emulator(found), EMULATOR)
    if any(shutil.which(program) is None for program in needed) or not _can_count(found):
        packages = dict.fromkeys([*needed.values(), found.counting_package])
        pytest.skip(f"needs {found.cc} with all it takes: apt-get install {' '.join(packages)}")
    return found


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """Where programs put their counts."""
    directory = tmp_path / "counts"
    directory.mkdir()
    return directory


@pytest.fixture
def tree(compiler: AnyCompiler, counts: Path, tmp_path: Path) -> Path:
    """The small program, compiled so that it counts."""
    directory = tmp_path / "tree"
    directory.mkdir()
    (directory / "forks.c").write_text(FORKS)
    build(compiler, directory, compiler.counting(counts))
    return directory


@pytest.mark.parametrize("compiler", CROSS, ids=lambda one: one.cc, indirect=True)
def test_on_arm_atomics_are_inline_only_where_the_cpu_is_named(compiler: AnyCompiler, tmp_path: Path) -> None:
    (tmp_path / "forks.c").write_text(ATOMIC)
    counts = []
    for flag in ("-moutline-atomics", "-mcpu=neoverse-n1"):
        build(compiler, tmp_path, (flag,))
        with (tmp_path / "forks").open("rb") as file:
            found = read_atomics(file)
        assert isinstance(found, Atomics)
        counts.append(found.inline)
        assert run(compiler, tmp_path, "word") == 3
    assert counts[0] == 0
    assert counts[1] > 0


def run(compiler: AnyCompiler, tree: Path, *words: str, environment: Mapping[str, str] | None = None) -> int:
    """Run the small program, by the emulator if it is for another machine; return its status."""
    argv = [*emulator(compiler), str(tree / "forks"), *words]
    return subprocess.run(argv, env={**os.environ, **(environment or {})}, check=False).returncode


def emulator(compiler: AnyCompiler) -> list[str]:
    """Return what runs a compiler's programs, of the package that registers it with the kernel elsewhere."""
    return [] if compiler.foreign is None else [f"qemu-{compiler.foreign.machine}-static"]


def build(compiler: AnyCompiler, tree: Path, flags: tuple[str, ...]) -> str:
    """Compile and link the small program as make does: first its object, then itself."""
    # The emulator is not to need another machine's libraries.
    linking = [*compiler.linker, *([] if compiler.foreign is None else ["-static"])]
    for argv in (["-c", "-o", "forks.o", "forks.c"], ["forks.o", *linking, "-o", "forks"]):
        done = subprocess.run(
            [*compiler.cc.split(), "-O2", *flags, *argv],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_program_that_forks_is_counted_and_compiled_for_what_was_counted(
    compiler: AnyCompiler, tree: Path, counts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small program does what a server does: its children run the code, and end on their own."""
    train(compiler, tree, counts)
    be_content_with_little(compiler, counts, monkeypatch)
    gather(compiler, counts, tree, list)
    assert int(reached(compiler, counts, list).split()[0]) >= 1
    said = build(compiler, tree, (*compiler.counted(counts), *compiler.linked_whole()))
    assert "warning" not in said
    assert run(compiler, tree) == 0
    symbols = subprocess.run(["nm", tree / "forks"], capture_output=True, text=True, check=True).stdout
    assert "__gcov" not in symbols
    assert "__llvm_prf" not in symbols


def test_too_little_training_is_refused(compiler: AnyCompiler, tree: Path, counts: Path) -> None:
    train(compiler, tree, counts)
    with pytest.raises(
        InstallationError, match=r"the training profile covers only \d (functions|object files)"
    ):
        gather(compiler, counts, tree, list)


def test_what_runs_besides_the_training_is_not_counted(
    compiler: AnyCompiler, tree: Path, counts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data sets are loaded by the same program, but only where they are not there already."""
    be_content_with_little(compiler, counts, monkeypatch)
    train(compiler, tree, counts)
    gather(compiler, counts, tree, list)
    trained = gathered(tree, counts)
    assert trained
    assert (
        run(compiler, tree, *(5 * ["word"])) == 18
    )  # three times its name and five words: what training never reaches
    gather(compiler, counts, tree, list)
    assert gathered(tree, counts) == trained


def gathered(tree: Path, counts: Path) -> dict[str, bytes]:
    """Return what the compiler will read: gcc's file or clang's."""
    files = (tree / "forks.gcda", counts / "merged.profdata")
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def train(compiler: AnyCompiler, tree: Path, counts: Path) -> None:
    """Run the small program so that what it counts is wanted."""
    assert run(compiler, tree, environment=compiler.counting_environment(counts)) == 0


def be_content_with_little(compiler: AnyCompiler, counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a single unit for enough: no more can be reached in a small program."""
    enough = replace(compiler.coverage(counts), least=1)
    monkeypatch.setattr(type(compiler), "coverage", lambda *_: enough)
