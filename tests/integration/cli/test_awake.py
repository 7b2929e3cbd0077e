"""CPUs are kept awake for real, and come back as they were, also after a kill. As root, with haltpoll."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.fix_home import home_below, pgdyno
from tests.fix_machine import alone

from pgdyno.postgres.process.local_machine import machine_claimed

PARAMETERS = Path("/sys/module/haltpoll/parameters")
NAMES = ("guest_halt_poll_grow_start", "guest_halt_poll_allow_shrink", "guest_halt_poll_ns")
LENGTH = PARAMETERS / "guest_halt_poll_ns"
AWAKE = {"PGDYNO_AS_BOOTED": "0"}  # other tests measure as booted, because they run beside each other
HELD = ("200000", "N", "200000")
HOLD = """
import sys, time
from pgdyno.apply.host_state import this_host
from pgdyno.host.probing.spinners import polling_wanted
from pgdyno.host.files.tree import Tree
with this_host().holding(polling_wanted(Tree())):
    print("held", flush=True)
    while True:
        time.sleep(0.1)  # a signal right before a sleep does not end it
"""

pytestmark = [
    pytest.mark.skipif(not os.access(LENGTH, os.W_OK), reason="needs haltpoll, and root"),
    pytest.mark.server,
    pytest.mark.usefixtures("home"),
]


def shown() -> tuple[str, ...]:
    return tuple((PARAMETERS / name).read_text().strip() for name in NAMES)


@pytest.fixture
def found() -> Iterator[tuple[str, ...]]:
    """The parameters as found, while no other test changes the machine; put back whatever happens."""
    with alone():
        before = shown()
        if int(LENGTH.read_text()) >= 200_000:
            pytest.skip("this machine polls already")
        yield before
        for name, value in zip(NAMES[::-1], before[::-1], strict=True):
            (PARAMETERS / name).write_text(value)


@contextlib.contextmanager
def holding() -> Iterator[subprocess.Popen[str]]:
    """Run a process that keeps CPUs awake."""
    # A test run in the background may ignore SIGINT, and its children would inherit that.
    command = ["env", "--default-signal=INT", sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_measurement_is_reverted(found: tuple[str, ...]) -> None:
    with holding() as process:
        assert shown() == HELD
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert shown() == HELD
    done = pgdyno("revert")
    assert (done.returncode, shown()) == (0, found), done.stderr


def test_ctrl_c_gives_the_machine_back(found: tuple[str, ...]) -> None:
    with holding() as process:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=250)
        assert shown() == found


@cache
def usual() -> dict[str, object]:
    """Measure as a user does who asks for nothing else."""
    return measured()


def measured(*options: str) -> dict[str, object]:
    """Measure a moment, and return how CPUs idled."""
    arguments = ("pgbench-select", "--scale", "1", "--embedded", "--block", "1s", "--blocks", "1", *options)
    done = pgdyno("bench", *arguments, "--json", **AWAKE)
    assert done.returncode == 0, done.stderr
    awake = json.loads(done.stdout)["awake"]
    assert isinstance(awake, dict)
    return awake


def test_a_measurement_says_how_cpus_idled_and_leaves_them_as_they_were(found: tuple[str, ...]) -> None:
    kept = usual()
    if kept["means"] is None:  # another load on this machine can hide what polling saves
        assert str(kept["reason"]).startswith("polling does not shorten a wake-up")
    else:
        assert kept["means"] in {
            "haltpoll",
            "spinners",
        }  # which are tried where polling seemed to save nothing
        assert 0 < kept["held_us"] < kept["booted_us"]  # type: ignore[operator]
    assert shown() == found
    booted = measured("--as-booted")
    assert (booted["means"], booted["reason"]) == (None, "--as-booted was given")
    assert shown() == found


def test_a_measurement_holds_them_while_it_runs(found: tuple[str, ...]) -> None:
    if usual()["means"] is None:
        pytest.skip("polling does not shorten a wake-up at the moment")
    command = [sys.executable, "-m", "pgdyno", "bench", "pgbench-select", "--scale", "1", "--embedded"]
    command += ["--blocks", "40"]
    environment = {**os.environ, **AWAKE}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        ends = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < ends and not (is_held := _is_held_for_long()):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    if not is_held:
        pytest.skip("polling did not shorten a wake-up when it was tried again")
    assert shown() == HELD
    assert measured("--as-booted")["booted_us"] is not None
    assert shown() == found


@pytest.mark.usefixtures("found")
def test_another_pgdyno_of_root_is_refused_whatever_its_home_is() -> None:
    with machine_claimed(is_wanted=True), home_below(Path(tempfile.gettempdir())) as other:
        arguments = ("pgbench-select", "--scale", "1", "--embedded", "--blocks", "1")
        done = pgdyno("bench", *arguments, PGDYNO_HOME=str(other), **AWAKE)
    assert done.returncode == 4
    assert "another pgdyno process is making changes on this host" in done.stderr
    assert f"process {os.getpid()} holds /run/pgdyno.lock" in done.stderr


def _is_held_for_long() -> bool:
    """Whether the values are held for longer than it takes to try them."""
    if shown() != HELD:
        return False
    time.sleep(1)
    return shown() == HELD
