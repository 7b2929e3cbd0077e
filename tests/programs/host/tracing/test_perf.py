"""A real perf that samples a process, and what is said where it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_servers import wait_until

from pgdyno.base.errors import ServerError
from pgdyno.host.tracing.perf import (
    STACKS,
    counting,
    find_perf,
    read_recording,
    recording,
    sampling,
    try_counters,
)
from pgdyno.profile.hardware import parse_perf_stat
from pgdyno.profile.stacks import parse_stacks

NAMES = Path("/proc/kallsyms")
installed = pytest.mark.skipif(
    find_perf() is None, reason="perf is not installed: apt-get install linux-perf"
)


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process in user mode, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@installed
def test_stacks_are_sampled_while_it_is_on(busy: int, tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    with recording(program, sampling(499, [busy]), tmp_path / "perf.data", list) as perf:
        with perf.on():
            enough = cpu_ticks(busy) + 30
            wait_until(lambda: cpu_ticks(busy) >= enough)
        perf.end()
    samples = list(parse_stacks(read_recording(program, perf.file, STACKS, list, NAMES)))
    assert samples
    assert {sample.pid for sample in samples} == {busy}


@installed
def test_a_recording_that_perf_cannot_read_is_an_error(tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    file = tmp_path / "perf.data"
    file.write_text("no recording")
    with pytest.raises(ServerError, match="perf script could not read the output of perf record"):
        list(read_recording(program, file, STACKS, list, NAMES))


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called perf, the only one there is; a test says what it does."""
    perf = tmp_path / "perf"
    perf.write_text("#!/bin/sh\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return perf


def test_a_perf_of_another_kernel_counts_as_none(made_up: Path) -> None:
    assert find_perf() == str(made_up)
    made_up.write_text("#!/bin/sh\nexit 2\n")
    assert find_perf() is None
    made_up.unlink()
    assert find_perf() is None


@installed
def test_it_counts_while_it_is_on(busy: int, tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    with counting(program, ("task-clock", "page-faults"), "", [busy], tmp_path / "counts", list) as perf:
        with perf.on():
            subprocess.run([sys.executable, "-S", "-c", "sum(range(3000000))"], check=True)
        found = parse_perf_stat(perf.read())
    assert found.counts["task-clock"].value > 0
    assert found.counts["page-faults"].value >= 0


@installed
def test_a_process_that_is_not_there_is_an_error_in_perfs_words(tmp_path: Path) -> None:
    program = shutil.which("perf")
    assert program
    with (
        pytest.raises(ServerError, match="perf stat failed"),
        counting(program, ("task-clock",), "", [2**22 - 1], tmp_path / "counts", list),
    ):
        pass


@installed
def test_a_short_program_is_counted_and_what_perf_does_not_know_is_said() -> None:
    program = shutil.which("perf")
    assert program
    tried = try_counters(program, ("task-clock",))
    assert parse_perf_stat(tried.lines).counts["task-clock"].value > 0
    assert tried.words == ""
    assert "nonsense" in try_counters(program, ("nonsense",)).words
