"""What make has started ends with pgdyno, however that ends: it would go on in a tree that is used again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_servers import wait_until

from pgdyno.postgres.process.processes import is_alive

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
from pgdyno.builds.stages import Building
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.builds.make import Making

tree = Path(sys.argv[1])
building = Building(Workspace(tree, caller()), None, None, None, None, None)
Making(tree, tree / "log", "PostgreSQL", building._run_as).build(["."], {}, lambda _: None)
"""


def test_a_killed_pgdyno_leaves_no_compiler_behind(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    pgdyno = subprocess.Popen([sys.executable, "-c", BUILDING, str(tmp_path)])
    pid = tmp_path / "pid"
    wait_until(lambda: pid.is_file() and pid.read_text().endswith("\n"))
    inner = int(pid.read_text())
    assert is_alive(inner)
    pgdyno.kill()
    pgdyno.wait()
    wait_until(lambda: not is_alive(inner))
