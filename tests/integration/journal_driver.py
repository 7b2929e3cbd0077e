"""A process of its own that applies or reverts and kills itself with SIGKILL after a given step.

    python journal_driver.py '{"action": "apply", "kill_after": 3, "dsn": …, "journal": …, …}'

It prints "done" if it gets to its end. ``kill_after`` 0 kills it nowhere.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pgdyno.app.apply import ApplyRequest, apply_plan
from pgdyno.app.revert import RevertRequest, revert
from pgdyno.journal.access import ServerAccess
from pgdyno.journal.query import Connection
from pgdyno.journal.restart import command_restarter
from pgdyno.server.connection import connect

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.integration.journal_support import plan_of


class Killer:
    """Kills this process after so many steps, without any chance to clean up."""

    def __init__(self, kill_after: int) -> None:
        self.left = kill_after

    def __call__(self, step: str) -> None:
        self.left -= 1
        if self.left == 0:
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def main(task: dict[str, Any]) -> None:
    """Do what the task says."""

    def open_connection() -> Connection:
        return connect(task["dsn"], is_read_only=False)

    access = ServerAccess(
        open_connection,
        Path(task["journal"]),
        data_directory=Path(task["data_directory"]) if task["data_directory"] else None,
        restarter=command_restarter(task["restart_command"], open_connection),
    )
    killer = Killer(task["kill_after"])
    if task["action"] == "apply":
        apply_plan(
            access, ApplyRequest(plan_of(**task["settings"]), allow_restart=task["restart"], steps=killer)
        )
    else:
        revert(access, RevertRequest(is_all=True, allow_restart=True, steps=killer))
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
