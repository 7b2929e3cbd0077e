"""A real perf that counts: by the kernel's own counters, which every machine has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.host.tracing.counters import counting, try_counters
from pgdyno.host.tracing.perf import find_perf
from pgdyno.profile.perf_stat import parse_perf_stat

pytestmark = pytest.mark.skipif(
    find_perf() is None, reason="perf is not installed: apt-get install linux-perf"
)


def test_it_counts_while_it_is_on(busy: int, tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    with counting(program, ("task-clock", "page-faults"), "", [busy], tmp_path / "counts", list) as perf:
        with perf.on():
            subprocess.run([sys.executable, "-S", "-c", "sum(range(3000000))"], check=True)
        found = parse_perf_stat(perf.read())
    assert found.counts["task-clock"].value > 0
    assert found.counts["page-faults"].value >= 0


def test_a_process_that_is_not_there_is_an_error_in_perfs_words(tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    with (
        pytest.raises(ServerError, match="perf stat failed"),
        counting(program, ("task-clock",), "", [2**22 - 1], tmp_path / "counts", list),
    ):
        pass


def test_a_short_program_is_counted_and_what_perf_does_not_know_is_said() -> None:
    program = shutil.which("perf")
    assert program
    tried = try_counters(program, ("task-clock",))
    assert parse_perf_stat(tried.lines).counts["task-clock"].value > 0
    assert tried.words == ""
    assert "nonsense" in try_counters(program, ("nonsense",)).words
