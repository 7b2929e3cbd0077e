"""``pgdyno status`` ends servers that a killed pgdyno has left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.integration.test_left_servers import _left

from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.processes import is_alive
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, workspace: Workspace) -> Workspace:
    """Return a workspace that no other test uses, where the servers' account can reach it."""
    root = workspace.root / tmp_path_factory.mktemp("own").name
    root.mkdir(mode=0o755)
    return Workspace(root, workspace.account)


@pytest.fixture
def leave(place: Workspace, installation: Installation) -> Iterator[Callable[[], tuple[int, Path]]]:
    """Return a function that leaves a server: the postmaster's number, and its data directory.

    Its postmaster is stopped before the process that started it is killed: no signal ends it.
    """
    left = []

    def leave_one() -> tuple[int, Path]:
        pid, data_directory = _left(place, installation)
        left.append(pid)
        return pid, data_directory

    yield leave_one
    for pid in left:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("words", [["status"], ["revert", "--host-only"]])
def test_status_and_revert_end_it_and_say_so(
    place: Workspace, leave: Callable[[], tuple[int, Path]], words: list[str]
) -> None:
    pid, data_directory = leave()
    done = pgdyno(*words, PGDYNO_HOME=str(place.root))
    said = f"pgdyno: WARNING:  ended a server left running by a killed pgdyno: {data_directory}\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert not is_alive(pid)
    assert not data_directory.parent.exists()
