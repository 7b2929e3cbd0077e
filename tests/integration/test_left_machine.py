"""Values that a killed test or measurement has left on the machine are put back from one fixed place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_machine import POOL, SWAPPINESS, Machine, alone
from tests.house.source import ROOT

from pgdyno.apply.host_state import this_host

pytestmark = pytest.mark.root


def given_back(place: Path) -> str:
    """Do as continuous integration does before it begins."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fix_machine", str(place)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def die() -> None:
    """End as a test does that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_test(place: Path, machine: Machine) -> dict[str, tuple[str, str]]:
    """Let a test change the machine and be killed; return what it has changed, and to what."""
    before, wanted = machine.snapshot(), machine.others()
    changed = {path: (before[path].strip(), wanted[path]) for path in (SWAPPINESS, POOL)}
    if (child := os.fork()) == 0:
        with alone(place):
            for path, (_, value) in changed.items():
                machine.set(path, value)
            die()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert machine.snapshot() != before
    return changed


def test_what_a_killed_test_has_changed_is_put_back_and_said(tmp_path: Path, machine: Machine) -> None:
    before = machine.snapshot()
    changed = killed_test(tmp_path, machine)
    assert sorted(given_back(tmp_path).splitlines()) == sorted(
        f"{path}: {value} -> {former}" for path, (former, value) in changed.items()
    )
    assert machine.snapshot() == before
    assert given_back(tmp_path) == "nothing was left on the machine\n"


def test_the_next_test_that_changes_the_machine_puts_it_back(tmp_path: Path, machine: Machine) -> None:
    before = machine.snapshot()
    killed_test(tmp_path, machine)
    with alone(tmp_path):
        assert machine.snapshot() == before


@pytest.mark.usefixtures("own_home")
def test_what_a_killed_measurement_has_changed_is_put_back_and_said(tmp_path: Path, machine: Machine) -> None:
    former, value = machine.snapshot()[SWAPPINESS].strip(), machine.others()[SWAPPINESS]
    if (child := os.fork()) == 0:
        with this_host().holding({SWAPPINESS: value}):
            die()
    os.waitpid(child, 0)
    assert Path(SWAPPINESS).read_text().strip() == value
    assert given_back(tmp_path) == f"{SWAPPINESS}: {value} -> {former}\n"
