"""What make has started ends with pgdyno, however that ends: it would go on in a tree that is used again."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgdyno.server.process.processes import is_alive

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("setpriv") is None,
    reason="not installed: make, or setpriv (apt install make util-linux)",
)

MAKEFILE = """\
all:
\t$(MAKE) inner
inner:
\techo $$PPID > pid
\tsleep 60
"""
BUILDING = """\
import sys
from pathlib import Path
from pgdyno.app.building.stages import Building
from pgdyno.server.process.account import caller
from pgdyno.server.process.workspace import Workspace
from pgdyno.toolchain.run.making import Making

tree = Path(sys.argv[1])
building = Building(Workspace(tree, caller()), None, None, None, None, None)
Making(tree, tree / "log", "PostgreSQL", building._run_as).build(["."], {}, lambda _: None)
"""


def test_a_killed_pgdyno_leaves_no_compiler_behind(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    pgdyno = subprocess.Popen([sys.executable, "-c", BUILDING, str(tmp_path)])
    inner = wait_for_pid(tmp_path / "pid")
    assert is_alive(inner)
    pgdyno.kill()
    pgdyno.wait()
    deadline_s = time.monotonic() + 20
    while is_alive(inner) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not is_alive(inner)


def wait_for_pid(file: Path) -> int:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        if file.is_file() and (text := file.read_text().strip()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("make did not get so far")
