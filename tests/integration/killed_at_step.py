"""Lets processes apply and revert, and kills them after every one of their steps in turn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fix_debian import DebianCluster
from tests.fix_servers import RealServer

MOST_STEPS = 60


@dataclass
class Driver:
    """Runs applies and reverts of one server in processes that get killed; see journal_driver.py.

    ``task`` is what all their tasks have in common.
    """

    server: RealServer | DebianCluster
    process: subprocess.Popen[str]
    task: Mapping[str, object]

    def __call__(self, action: str, journal: Path, **task: object) -> str:
        document = {
            "action": action,
            "journal": str(journal),
            "dsn": self.server.dsn,
            "data_directory": None,
            **self.task,
            **task,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        return str(json.loads(self.process.stdout.readline()))


@contextmanager
def driving(server: RealServer | DebianCluster, **task: object) -> Iterator[Driver]:
    """Provide a driver for a server."""
    command = [sys.executable, str(Path(__file__).with_name("journal_driver.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Driver(server, process, task)
        assert process.stdin is not None
        process.stdin.close()


def at_every_step(
    tmp_path: Path, kill: Callable[[Path, int], str], check: Callable[[Path], bool], end: str = "done"
) -> list[str]:
    """Kill at the first step, at the second one, …, until it gets to its end; check after each."""
    steps: list[str] = []
    while steps[-1:] != [end]:
        assert len(steps) < MOST_STEPS, steps
        journal = tmp_path / f"journal-{len(steps)}"
        steps.append(kill(journal, len(steps) + 1))
        assert check(journal), steps
    return steps
