"""A machine without an id, on which no receipt could be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fix_machine import alone

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.usefixtures("pg18_bin", "home")]


def test_a_plan_for_it_is_refused_before_anything_is_measured() -> None:
    assert Path("/etc/machine-id").is_file()
    hidden = 'mount --bind /dev/null /etc/machine-id && exec "$@"'
    command = ["accelerate", "--embedded", "--workload", "pgbench-select", "--scale", "1", "--budget", "5m"]
    with alone():
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", hidden, "sh", sys.executable, "-m", "pgdyno", *command],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "this machine has no id for receipts to identify it" in done.stderr
    assert "HINT:  create one with systemd-machine-id-setup" in done.stderr
    assert "profiling" not in done.stderr
