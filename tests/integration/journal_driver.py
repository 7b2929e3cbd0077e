"""Applies and reverts in processes of their own, which kill themselves with SIGKILL after a given step.

Reads tasks from standard input, one JSON document a line, and forks a process for each, so that Python
starts once. Answers with the steps that process took, the last one that it was killed at, or else "done" or
its error.
It dies after ``kill_after`` steps, or after the step named ``kill_at``, or, with ``kill_after_s``, so long
after its journal was created; else nowhere. With ``fail_at`` the step of that name fails, so that an apply
is rolled back, and ``kill_after`` and the answer count from there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.apply.session.restart import command_restarter
from pgdyno.base.errors import PgdynoError, ServerError
from pgdyno.postgres.connection.connection import addresses, connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.integration.journal_support import plan_of, with_programs

_END = "\0"


class Killer:
    """Kills this process at a step, without any chance to clean up."""

    def __init__(self, kill_after: int | None, kill_at: str | None, fail_at: str | None) -> None:
        self.left = kill_after
        self.name = kill_at
        self.failing = fail_at

    def __call__(self, step: str) -> None:
        if step == self.failing:
            self.failing = None
            raise ServerError(f"failed at {step}")
        if self.failing is None:
            say(step)
        if self.left is not None and self.failing is None:
            self.left -= 1
        if self.left == 0 or step == self.name:
            os.kill(os.getpid(), signal.SIGKILL)


def say(text: str) -> None:
    """Write a part of the answer, in one go."""
    os.write(sys.stdout.fileno(), f"{text}{_END}".encode())


def carry_out(task: dict[str, Any]) -> None:
    """Do what the task says, in this process."""

    def open_connection() -> Connection:
        return connect_to_change(task["dsn"])

    access = ServerAccess(
        open_connection,
        Path(task["journal"]),
        inspect_server,
        data_directory=Path(task["data_directory"]) if task["data_directory"] else None,
        restarter=command_restarter(task["restart_command"], open_connection),
        addresses=addresses(task["dsn"]),
    )
    killer = Killer(task.get("kill_after"), task.get("kill_at"), task.get("fail_at"))
    if task["action"] == "apply":
        plan = with_programs(plan_of(**task["settings"]), task.get("programs", []))
        apply_plan(access, ApplyRequest(plan, allow_restart=True, steps=killer))
    else:
        revert(access, RevertRequest(is_all=True, allow_restart=True, steps=killer))


def run_forked(task: dict[str, Any]) -> list[str]:
    """Do what the task says in a new process, and return its steps and what became of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, sys.stdout.fileno())
        end = "done"
        try:
            carry_out(task)
        except PgdynoError as error:
            end = str(error)
        say(end)
        os._exit(0)
    os.close(writing)
    if task.get("kill_after_s") is not None:
        deadline_s = time.monotonic() + 60
        while not (Path(task["journal"]) / "journal.jsonl").exists() and time.monotonic() < deadline_s:
            time.sleep(0.001)
        time.sleep(task["kill_after_s"])
        os.kill(child, signal.SIGKILL)  # it is not waited for yet, so that its number is still its own
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said.split(_END)[:-1]


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run_forked(json.loads(line))) + "\n")
        sys.stdout.flush()
