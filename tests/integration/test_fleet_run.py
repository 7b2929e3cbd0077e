"""``pgdyno fleet``: a fleet of two machines on a local Dask cluster, measured for real, and its report.

Both machines are this one, on which one trial is made at a time.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.dask_cluster import NO_DASK, dask_cluster
from tests.fix_home import pgdyno

pytest.importorskip("distributed", reason=NO_DASK)
pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

FLEET = """
command = "pgdyno compare default more:work_mem=8MB --workload pgbench-select --scale 1 --embedded \
--blocks 5 --block 300ms --clients 1"
limit = "4m"
price_per_hour = 0.5

[machines.db1]
[machines.db2]
"""


def test_a_fleet_is_planned_run_once_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "two-machines.toml"
    file.write_text(FLEET)
    with dask_cluster(["db1", "db2"]) as cluster:
        address = cluster.scheduler_address
        plan = pgdyno("fleet", "plan", str(file), "--scheduler", address, "--json")
        assert plan.returncode == 0, plan.stderr
        planned = json.loads(plan.stdout)
        assert [one["trials"] for one in planned["fleet"]["machines"]] == [1, 1]
        assert planned["without_worker"] == []
        done = pgdyno("fleet", "run", str(file), "--scheduler", address, "--json")
        assert done.returncode == 0, done.stderr
        again = pgdyno("fleet", "run", str(file), "--scheduler", address)
    machines = json.loads(done.stdout)["fleet"]["machines"]
    assert [(one["machine"], one["done"]) for one in machines] == [("db1", 1), ("db2", 1)]
    assert all(one["trial_s"] > 0 and one["cost"] > 0 for one in machines)
    assert "2 of 2 trials are done." in again.stdout
    assert "trials are done" not in again.stderr  # nothing was measured again
    report = pgdyno("fleet", "report", str(file))
    if report.returncode:  # the machine was busy: no effect has a result on both
        assert "no two of them have a result for the same metric" in report.stderr
        assert_says_why(report.stderr)
        return
    assert report.stdout.startswith("2 machines, 2 experiments\n")
    assert "db1 and db2 have alike processors, caches and memory" in " ".join(report.stdout.split())
    if "throughput of more against default" not in report.stdout:
        assert_says_why(report.stdout)


def assert_says_why(report: str) -> None:
    """Throughput drifted on a busy machine, or has too few blocks: then it is not combined, and named."""
    assert re.search(
        r"db[12] .*, more against default on pgbench-select: throughput \((withheld|only)", report
    )
