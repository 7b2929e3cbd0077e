"""A real valgrind: what it writes is read, and an instruction that it does not know is found in its words."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.host.host import Cache
from pgdyno.host.tracing.valgrind import Valgrind, find_valgrind, output_of, trace_of, unknown_instruction
from pgdyno.profile.callgrind import TAKEN, parse_callgrind
from pgdyno.profile.misses.tally import SplitCaches, split_caches, tally
from pgdyno.profile.simulated_caches import simulated_caches

pytestmark = [
    pytest.mark.skipif(find_valgrind() is None, reason="valgrind is not installed: apt-get install valgrind"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]
LOOP = """
__attribute__((noinline)) static int turn(volatile int *n) { return *n -= 1; }
int main(void) { volatile int n = 1000; while (turn(&n)) { } return 0; }
"""
# Reads and writes at random in one megabyte of variables, and reads in half a megabyte of its own memory.
RANDOM = """
#include <stdlib.h>
static unsigned char table[1 << 20];
int main(void) {
    unsigned x = 1, sum = 0;
    unsigned char *own = malloc(1 << 19);
    for (int n = 0; n < 20000; n++) {
        x = x * 1664525u + 1013904223u;
        table[x >> 12] += 1;
        sum += own[(x >> 13) & ((1 << 19) - 1)] + table[x >> 16];
    }
    return sum == 42;
}
"""
CACHES = simulated_caches(
    (
        Cache(1, "Data", 48 << 10, 12, 64),
        Cache(1, "Instruction", 32 << 10, 8, 64),
        Cache(2, "Unified", 256 << 10, 16, 64),
    )
)
# vpaddd zmm0, zmm0, zmm0: AVX-512
UNKNOWN = 'int main(void) { __asm__ volatile (".byte 0x62,0xf1,0x7d,0x48,0xfe,0xc0"); return 0; }'


def simulated(source: str, directory: Path) -> tuple[int, str]:
    """Compile and simulate a program; return its process and what was said."""
    (directory / "main.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-o", directory / "main", directory / "main.c"], check=True)
    return run_under(installed().simulating(directory, CACHES.options), directory)


def run_under(valgrind: tuple[str, ...], directory: Path) -> tuple[int, str]:
    done = subprocess.Popen([*valgrind, str(directory / "main")], stderr=subprocess.PIPE, text=True)
    _, said = done.communicate(timeout=250)
    return done.pid, said


def installed() -> Valgrind:
    found = find_valgrind()
    assert found is not None
    return found


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


def test_our_caches_miss_in_a_trace_what_callgrinds_do(tmp_path: Path) -> None:
    pid, _ = simulated(RANDOM, tmp_path)
    with output_of(tmp_path, pid).open() as lines:
        counted = parse_callgrind(lines).totals
    assert installed().has_tracer
    pid, _ = run_under(installed().tracing(tmp_path), tmp_path)
    caches = split_caches(CACHES.known)
    assert isinstance(caches, SplitCaches)
    found = tally([trace_of(tmp_path, pid).read_bytes()], caches)
    # callgrind takes an access over the end of a line for one miss, of both lines.
    assert found.l1d.total() == pytest.approx(counted["D1mr"] + counted["D1mw"], rel=0.01)
    assert found.l2.total() == pytest.approx(counted["DLmr"] + counted["DLmw"], rel=0.01)
    assert found.l2.total() > 10_000
