"""A real valgrind: what it writes is read, and an instruction that it does not know is found in its words."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.host.tracing.valgrind import find_valgrind, output_of, unknown_instruction
from pgdyno.profiling.callgrind import TAKEN, parse_callgrind

pytestmark = [
    pytest.mark.skipif(find_valgrind() is None, reason="valgrind is not installed: apt-get install valgrind"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]
LOOP = """
__attribute__((noinline)) static int turn(volatile int *n) { return *n -= 1; }
int main(void) { volatile int n = 1000; while (turn(&n)) { } return 0; }
"""
# vpaddd zmm0, zmm0, zmm0: AVX-512
UNKNOWN = 'int main(void) { __asm__ volatile (".byte 0x62,0xf1,0x7d,0x48,0xfe,0xc0"); return 0; }'


def simulated(source: str, directory: Path) -> tuple[int, str]:
    """Compile and simulate a program; return its process and what was said."""
    (directory / "main.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-o", directory / "main", directory / "main.c"], check=True)
    valgrind = find_valgrind()
    assert valgrind is not None
    done = subprocess.Popen(
        [*valgrind.simulating(directory, ()), str(directory / "main")], stderr=subprocess.PIPE, text=True
    )
    _, said = done.communicate(timeout=60)
    return done.pid, said


def test_a_loops_turns_are_counted(tmp_path: Path) -> None:
    pid, _ = simulated(LOOP, tmp_path)
    with output_of(tmp_path, pid).open() as lines:
        found = parse_callgrind(lines)
    program = str((tmp_path / "main").resolve())
    functions = found.functions[program]
    of_turn = [n for at, n in found.executed[program].items() if functions[at] == "turn"]
    assert set(of_turn) == {1000}
    assert found.totals["Ir"] == sum(sum(counts.values()) for counts in found.executed.values())
    assert found.totals["Bc"] >= 1000
    assert found.totals[TAKEN] >= 2999  # of each turn a call and a return, and a jump back but for the last


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instruction is x86-64's")
def test_an_instruction_that_it_does_not_know_is_found_in_its_words(tmp_path: Path) -> None:
    _, said = simulated(UNKNOWN, tmp_path)
    words = unknown_instruction(said)
    assert words is not None
    assert "0x62 0xF1 0x7D 0x48" in words
    assert unknown_instruction("LOG:  database system is ready to accept connections") is None
