"""What BOLT is called with and what it says; a real program whose branches are counted and rearranged."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from pgdyno.model.errors import InstallationError
from pgdyno.server.processes import running_from
from pgdyno.toolchain import bolt
from pgdyno.toolchain.bolt import LINKING, Bolt, find_bolt, reached, require_reached, taken_branches
from pgdyno.toolchain.programs import output_of

SAID = """\
BOLT-INFO: 4189 out of 15349 functions in the binary (27.3%) have non-empty execution profile
BOLT-INFO: program-wide dynostats after all optimizations before SCTC and FOP:

          2612184837 : taken forward branches
          4021470460 : taken branches
          4852613001 : non-taken conditional branches
           401871696 : taken forward branches (-84.6%)
          1007965717 : taken branches (-74.9%)
"""
SOURCE = """\
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int sum = argc;
    for (int child = 0; child < 3; child++)
        if (fork() == 0) { for (int i = 0; i < 1000000; i++) sum += i % 3 ? sum * 2 : i; exit(sum == 42); }
    for (int child = 0; child < 3; child++) wait(0);
    return 0;
}
"""


def test_what_bolt_says_is_understood() -> None:
    assert reached(SAID) == 4189
    assert taken_branches(SAID) == (4021470460, 1007965717)
    require_reached(SAID)


def test_a_profile_that_says_too_little_is_refused() -> None:
    with pytest.raises(InstallationError) as caught:
        require_reached(SAID.replace("4189 out of", "17 out of"))
    assert caught.value.message == "training has reached 17 functions by BOLT's counts, too few to go by"
    assert caught.value.hint == "name more workloads with --train, or leave bolt out of the profile"
    with pytest.raises(InstallationError, match="reached 0 functions"):
        require_reached("")
    with pytest.raises(InstallationError, match="does not say how many branches"):
        taken_branches("")


def installed() -> Bolt:
    found = find_bolt()
    if found is None:
        pytest.skip(f"needs BOLT: apt-get install {bolt.PACKAGE}")
    return found


def test_a_program_that_forks_is_counted_in_all_its_processes_and_rearranged(tmp_path: Path) -> None:
    found = installed()
    finished, counting, counts = tmp_path / "finished", tmp_path / "counting", tmp_path / "branches.fdata"
    argv = ["gcc", "-O2", "-fno-reorder-blocks-and-partition", LINKING, "-x", "c", "-o", str(finished), "-"]
    subprocess.run(argv, input=SOURCE, text=True, check=True)
    output_of(found.counting(finished, counts, counting))
    subprocess.run([str(counting)], check=True)
    while running_from(counting):
        time.sleep(0.05)
    branches = sum(int(line.split()[-1]) for line in counts.read_text().splitlines())
    assert branches > 4_000_000  # in each of three processes, one or two in each of a million rounds
    moved = tmp_path / "moved"
    said = output_of(found.rearranging(finished, counts, moved))
    assert reached(said) >= 1
    before, after = taken_branches(said)
    assert 0 < after <= before
    subprocess.run([str(moved)], check=True)
    assert b"__bolt_instr" in counting.read_bytes()
    assert b"__bolt_instr" not in moved.read_bytes()


def test_an_older_bolt_without_its_library_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, has_library in ((18, True), (21, False), (19, True)):
        home = tmp_path / f"llvm-{version}"
        (home / "bin").mkdir(parents=True)
        (home / "lib").mkdir()
        (home / "bin/llvm-bolt").write_text(f"#!/bin/sh\necho '  LLVM version {version}.1.0'\n")
        (home / "bin/llvm-bolt").chmod(0o755)
        if has_library:
            (home / "lib/libbolt_rt_instr.a").write_text("")
        (tmp_path / f"llvm-bolt-{version}").symlink_to(home / "bin/llvm-bolt")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_bolt() == Bolt(tmp_path / "llvm-19/bin/llvm-bolt", "19.1.0")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert find_bolt() is None


def test_computed_jumps_are_left_alone_where_bolt_would_lose_them() -> None:
    skipped = "--skip-funcs=ExecInterpExpr.*"
    here = Path("/usr/bin/llvm-bolt")
    for bolt_of, is_skipped in (
        (Bolt(here, "19.1.7"), True),
        (Bolt(here, "19.1.7", is_position_independent=False), False),
        (Bolt(here, "21.1.0"), False),
        (Bolt(here, "22.0.1"), False),
    ):
        assert (skipped in bolt_of.rearranging(Path("a"), Path("b"), Path("c"))) is is_skipped
        assert (skipped in bolt_of.counting(Path("a"), Path("b"), Path("c"))) is is_skipped
