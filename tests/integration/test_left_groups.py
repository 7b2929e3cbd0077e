"""Control groups of a killed pgdyno that kept CPUs awake: removed by whoever comes next. As root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import _remove_left, find_top

BENCH = ("bench", "pgbench-select", "--scale", "1", "--embedded", "--block", "1s", "--blocks", "1")


@pytest.mark.root
@pytest.mark.server
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", [("status",), ("revert", "--host-only"), BENCH])
def test_the_next_command_removes_the_group_of_a_killed_one(command: tuple[str, ...]) -> None:
    top = find_top(Tree())
    if isinstance(top, Unknown):
        pytest.skip(top.reason)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left = Path(top, f"pgdyno-awake-{ended.pid}")
    left.mkdir()
    try:
        assert pgdyno(*command).returncode == 0
        assert not left.exists()
    finally:
        if left.exists():
            left.rmdir()


def test_the_group_of_a_living_one_stays(tmp_path: Path) -> None:
    """It is empty for a moment, before anything runs in it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    for pid in (ended.pid, os.getpid()):
        (tmp_path / f"pgdyno-awake-{pid}").mkdir()
    _remove_left(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"pgdyno-awake-{os.getpid()}"]
