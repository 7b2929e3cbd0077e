"""Processes that start a child are killed at random moments of its first 300 ms: they leave nothing running.

Not even what the next pgdyno would end: it comes after half of the kills alone, and at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("server", "load", "build", "remote", "writer")
KILLS, SAMPLE = 500, 20  # of each kind
LIMIT_S = 3600  # of all, on a crowded machine


@pytest.mark.server
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("home")
def test_a_kill_leaves_no_child_and_nothing_is_removed_under_one(
    kind: str, pytestconfig: pytest.Config
) -> None:
    kills = KILLS if pytestconfig.getoption("--all-kill-points") else SAMPLE
    driver = ["-m", "tests.integration.child_kill_driver", kind, str(kills), "1"]
    done = subprocess.run(
        [sys.executable, *driver], capture_output=True, text=True, check=False, cwd=ROOT, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.pop("ended_by_next") <= kills  # those that were shutting down
    assert report == {"killed": kills, "left": [], "removed_under": []}
