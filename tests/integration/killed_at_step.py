"""Lets processes apply and revert, and kills them after every one of their steps in turn, or after some."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests.fix_debian import DebianCluster
from tests.fix_servers import RealServer

SOME_OR_EVERY = pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some steps", "every step"]
)
"""Whether processes are killed after every step, which takes minutes, or after those of ``telling``."""


@dataclass
class Driver:
    """Runs applies and reverts of one server in processes that get killed; see journal_driver.py.

    ``task`` is what all their tasks have in common.
    """

    server: RealServer | DebianCluster
    process: subprocess.Popen[str]
    task: Mapping[str, object]

    def __call__(self, action: str, journal: Path, **task: object) -> str:
        """Return the step that it was killed at, "done" or its error; nothing if it did not get so far."""
        steps = self.steps(action, journal, **task)
        return steps[-1] if steps else ""

    def steps(self, action: str, journal: Path, **task: object) -> list[str]:
        """Return the steps that it took, and then, unless it was killed, "done" or its error."""
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
        return [str(step) for step in json.loads(self.process.stdout.readline())]


@contextmanager
def driving(server: RealServer | DebianCluster, **task: object) -> Iterator[Driver]:
    """Provide a driver for a server."""
    command = [sys.executable, str(Path(__file__).with_name("journal_driver.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Driver(server, process, task)
        assert process.stdin is not None
        process.stdin.close()


def at_steps(
    tmp_path: Path,
    act: Callable[[Path, int | None], list[str]],
    check: Callable[[Path], bool],
    end: str = "done",
    *,
    every: bool,
) -> list[str]:
    """Let it get to its end, and then kill it at steps; check after each. Returns all steps.

    ``act`` takes a journal and the number of the step to be killed after, and returns the steps taken.
    """
    steps = act(tmp_path / "journal", None)
    assert steps[-1] == end, steps
    assert check(tmp_path / "journal"), steps
    for number in range(1, len(steps)) if every else telling(steps[:-1]):
        journal = tmp_path / f"journal-{number}"
        taken = act(journal, number)
        assert len(taken) == number, (taken, steps)
        assert check(journal), taken
    return steps


def telling(steps: Sequence[str]) -> list[int]:
    """Return the numbers of the first step, of the last, and of those where the kind of operation changes.

    A step is counted where its kind follows another one for the first time: what is done to a second
    setting, as it was to the first, is left out.
    """
    kinds = ["", *(step.split()[0] for step in steps)]
    changes = [(before, kind) for before, kind in pairwise(kinds)]
    first = {change: number for number, change in reversed([*enumerate(changes, 1)]) if len({*change}) > 1}
    return sorted({*first.values(), len(steps)})
