"""A real program whose branches BOLT counts, and which it rearranges."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from pgdyno.builds.optimise import bolt
from pgdyno.builds.optimise.bolt import LINKING, Bolt, find_bolt, reached, taken_branches
from pgdyno.host.processes.running import output_of
from pgdyno.postgres.process.processes import running_from

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


def installed() -> Bolt:
    found = find_bolt()
    if found is None or shutil.which("gcc") is None:
        pytest.skip(f"not installed: BOLT or gcc (apt install {bolt.PACKAGE} gcc)")
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
