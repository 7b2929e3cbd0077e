"""Makes, uses and removes the account where /etc is a copy: see own_etc.py. It prints JSON."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from tests.integration.own_etc import USERS

from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest
from pgdyno.apply.revert_host import revert_host
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess, no_steps
from pgdyno.apply.session.query import Connection
from pgdyno.apply.setup_account import set_up_account
from pgdyno.base.errors import ConnectionFailedError, LockHeldError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import children
from pgdyno.postgres.process.registry import embedded
from pgdyno.workload.workload_choice import find_workloads

ETC = Path("/etc")
JOURNAL = workspace().root / "journal"
VARIANT = Variant("default")
SHOWN = ("Uid", "Gid", "NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_MOMENTS = 15  # at which a process is killed while useradd runs


def users() -> dict[str, str]:
    """Return the files that hold users and groups."""
    return {name: (ETC / name).read_text() for name in USERS if (ETC / name).exists()}


def revert(steps: Callable[[str], None] = no_steps) -> bool:
    """Restore the machine; whether that was complete."""
    access = ServerAccess(_no_server, JOURNAL, inspect_server, host_writers=host_writers())
    return revert_host(access, RevertRequest(is_all=True, steps=steps)).is_complete


def _no_server() -> Connection:
    raise ConnectionFailedError("no server is asked")


def killed_at(number: int, action: Callable[[Callable[[str], None]], object]) -> list[str]:
    """Do something in a process that is killed after its Nth step; return the steps that it took.

    The last one is "done" if it came to its end before.
    """
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        _take_steps(number, action, writing)
    os.close(writing)
    with os.fdopen(reading) as answer:
        steps = answer.read().splitlines()
    os.waitpid(child, 0)
    return steps


def _take_steps(number: int, action: Callable[[Callable[[str], None]], object], writing: int) -> NoReturn:
    taken: list[str] = []

    def step(name: str) -> None:
        os.write(writing, f"{name}\n".encode())
        taken.append(name)
        if len(taken) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        action(step)
        os.write(writing, b"done\n")
    finally:
        os._exit(0)


def is_as(before: dict[str, str]) -> bool:
    """Whether the users are as before, and no receipt is open."""
    return users() == before and not read_journal(JOURNAL).open


def kill_setup() -> list[Any]:
    """Kill a setup after each of its steps, and revert."""
    before = users()
    report: list[tuple[str, bool, bool]] = []
    while not report or report[-1][0] != "done":
        steps = killed_at(len(report) + 1, lambda step: set_up_account(workspace(), step))
        has_changed = users() != before
        report.append((steps[-1], has_changed, revert() and is_as(before)))
    return report


def kill_revert() -> list[Any]:
    """Kill a revert after each of its steps, and revert again."""
    before = users()
    report: list[tuple[str, bool, bool]] = []
    while not report or report[-1][0] != "done":
        assert set_up_account(workspace())
        steps = killed_at(len(report) + 1, revert)
        report.append((steps[-1], users() == before, revert() and is_as(before)))
    return report


def kill_at_any_moment() -> dict[str, int]:
    """Kill a setup at random moments, and revert; return how often the user was there, and was restored."""
    before, dice = users(), random.Random(8)  # noqa: S311 — reproducible
    found = {"killed": 0, "changed": 0, "restored": 0}
    for _ in range(_MOMENTS):
        if (child := os.fork()) == 0:
            try:
                set_up_account(workspace())
            finally:
                os._exit(0)
        time.sleep(dice.uniform(0.002, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found["killed"] += 1
        found["changed"] += users() != before
        found["restored"] += revert_when_free() and is_as(before)
    return found


def revert_when_free() -> bool:
    """Restore the machine; a child that a killed process has just forked keeps its locks for a moment."""
    deadline_s = time.monotonic() + 60
    while True:
        try:
            return revert()
        except LockHeldError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)


def half() -> list[Any]:
    """Leave what an interrupted useradd or userdel can leave, and revert."""
    before = users()
    report: list[tuple[str, bool, bool, bool]] = []
    for gone in ("group", "passwd"):
        killed_at(3, lambda step: set_up_account(workspace(), step))  # made, and not noted yet
        made = users()
        for name in ("passwd", "shadow") if gone == "passwd" else ("group", "gshadow"):
            (ETC / name).write_text(before[name])
        report.append((gone, made != before, users() != before, revert() and is_as(before)))
    return report


def in_use() -> dict[str, Any]:
    """Revert while a process runs as the account, and once it has ended."""
    with subprocess.Popen(current_account().command(["sleep", "100"])) as process:
        while process_status(process.pid)["Uid"].split()[0] != str(current_account().uid):
            time.sleep(0.01)
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "revert", "--host-only"],
            capture_output=True,
            text=True,
            check=False,
        )
        process.kill()
    return {"pid": process.pid, "code": done.returncode, "said": done.stderr}


def serve() -> dict[str, Any]:
    """Load a small data set, start a server on a copy of it with a load, and return what they run as."""
    workload = next(iter(find_workloads(("pgbench-select",), scale=1).values()))
    with open_scratch_arena(embedded(), [VARIANT], Lines(), is_isolated=False, is_timed=False) as arena:
        loaded = arena.data_sets.ensure(workload.data_set, arena.installation)
        found: dict[str, Any] = {
            "account": current_account().name,
            "data set": loaded.name,
            "owner": loaded.stat().st_uid,
        }
        arena.restore([VARIANT], [0], workload.data_set)
        with arena.arms([VARIANT], [0], workload.data_set) as (arm,):
            with closing(arm.server.connect(arm.database)) as connection:
                found["rows"] = connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone()
            turns = arena.loads.prepare([arm], ["probe"], workload, Design(clients=1), 2.0, [0])
            with closing(turns):
                turns.warm_up(0, 0.2)
                driver = next(pid for pid in children(os.getpid()) if name_of(pid) == "pgdyno-driver")
                found |= {"server": described(arm.postmaster_pid), "driver": described(driver)}
                turns.end()
    return found


def name_of(pid: int) -> str:
    """Return the name of a process."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def process_status(pid: int) -> dict[str, str]:
    """Return what /proc says of a process."""
    lines = (line.partition(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value for name, _, value in lines if name in SHOWN}


def described(pid: int) -> dict[str, Any]:
    """Return whom a process runs as, with what rights, and the names of its variables."""
    variables = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    return {**process_status(pid), "environment": sorted(variables)}


ACTIONS: dict[str, Callable[[], Any]] = {
    "kill setup": kill_setup,
    "kill revert": kill_revert,
    "kill at any moment": kill_at_any_moment,
    "half": half,
    "in use": in_use,
    "serve": serve,
    "account": lambda: current_account().name,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(ACTIONS[sys.argv[1]]()))
