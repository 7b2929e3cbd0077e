"""Control groups of a killed pgdyno that kept CPUs awake: removed by whoever comes next. As root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import find_top
from pgdyno.model.facts import Unknown

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
    left, of_a_living_one = (Path(top, f"pgdyno-awake-{pid}") for pid in (ended.pid, os.getppid()))
    left.mkdir()
    of_a_living_one.mkdir()
    try:
        assert pgdyno(*command).returncode == 0
        assert (left.exists(), of_a_living_one.exists()) == (False, True)
    finally:
        for group in filter(Path.exists, (left, of_a_living_one)):
            group.rmdir()
