"""The probes: medians of what was printed, bounds that no machine can undercut, and reasons."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.probes import WakeUp
from pgdyno.host.probing.run_probes import (
    PROGRAM,
    measure_fsync_us,
    measure_page_fault_ns,
    measure_system_call_ns,
    measure_wake_up,
    parse_wake_up,
    run_probes,
    stolen_between,
)

two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def test_the_median_of_the_times_is_shown_with_their_number() -> None:
    text = json.dumps({"idle_us": [100.0, 115.0, 900.0], "busy_us": [10.0, 12.0]})
    assert parse_wake_up(text, "CPU 0 wakes a process on CPU 3") == WakeUp(
        Fact(115.0, "CPU 0 wakes a process on CPU 3, median of 3"),
        Fact(11.0, "CPU 0 wakes a process on CPU 3, median of 2"),
    )


def test_without_a_single_time_it_is_unknown() -> None:
    found = parse_wake_up('{"idle_us": [], "busy_us": []}', "CPU 0 wakes a process on CPU 1")
    reason = "no process woke up within the time limit"
    assert found.idle_us == unknown(reason, "CPU 0 wakes a process on CPU 1")


def test_one_cpu_wakes_no_other() -> None:
    reason: Fact[float] = unknown(
        "there is one CPU, so that nothing wakes another", "two processes on two CPUs"
    )
    assert measure_wake_up([2]) == WakeUp(reason, reason)


def test_a_cpu_that_is_not_there_is_a_reason() -> None:
    reason = measure_wake_up([0, 100_000]).idle_us.value
    assert reason == Unknown("OSError: [Errno 22] Invalid argument")


def test_a_machine_on_which_it_hangs_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping = tmp_path / "sleeping.py"
    sleeping.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr("pgdyno.host.probing.run_probes.PROGRAM", sleeping)
    monkeypatch.setattr("pgdyno.host.probing.run_probes._TIMEOUT_S", 0.2)
    assert measure_wake_up([0, 1]).idle_us.value == Unknown("the measurement took longer than 0.2 s")


@two_cpus
def test_a_process_on_another_cpu_is_woken() -> None:
    found = measure_wake_up()
    cpus = sorted(os.sched_getaffinity(0))
    for fact in (found.idle_us, found.busy_us):
        assert isinstance(fact.value, float), fact
        assert fact.value > 0
        assert fact.source.startswith(f"CPU {cpus[0]} wakes a process on CPU {cpus[-1]}, median of ")


def test_a_system_call_and_a_page_fault_take_some_time() -> None:
    assert measure_system_call_ns().or_else(0) > 0
    assert measure_page_fault_ns().or_else(0) > 0


def test_an_fsync_is_measured_where_the_directory_is_and_leaves_nothing(tmp_path: Path) -> None:
    found = measure_fsync_us(tmp_path)
    assert found.or_else(0) > 0
    assert found.source.startswith(f"write and fsync of 8 kB in {tmp_path}, median of ")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    assert measure_fsync_us(tmp_path / "none").value == Unknown("no such file or directory")


def test_stolen_time_is_a_share_of_what_has_passed() -> None:
    early, late = Fact((100.0, 4000.0), "/proc/stat"), Fact((130.0, 4200.0), "/proc/stat")
    assert stolen_between(early, late) == Fact(30 / 200, "/proc/stat")
    assert stolen_between(early, early).value == Unknown("no time has passed")
    assert stolen_between(unknown("no such file", "/proc/stat"), late).value == Unknown(
        "could not read CPU times"
    )


def test_a_kernel_that_counts_no_stolen_time_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  1 2 3 4\n")
    found = run_probes(tmp_path, Tree(tmp_path))
    assert found.stolen_share.value == Unknown("could not read CPU times")


def test_the_program_runs_without_pgdyno() -> None:
    assert not {name for name in _imports() if name not in sys.stdlib_module_names}


def _imports() -> list[str]:
    lines = Path(PROGRAM).read_text().splitlines()
    return [line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))]
