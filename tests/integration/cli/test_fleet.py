"""``pgdyno fleet run``: a fleet of two machines on Dask's workers, measured for real, and its report.

Both machines are this one, on which one measures at a time. Neither Dask nor who runs the fleet is root.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dask_cluster import NO_DASK, DaskProcesses, dask_processes
from tests.fix_home import pgdyno

pytest.importorskip("distributed", reason=NO_DASK)
pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

FLEET = """
command = "pgdyno compare default more:work_mem=8MB --workload pgbench-select --scale 1 --embedded \
--blocks 5 --block 300ms --clients 1"
limit = "4m"

[machines.db1]
[machines.db2]
"""


@pytest.fixture
def dask() -> Iterator[DaskProcesses]:
    with dask_processes() as processes:
        processes.scheduler()
        processes.worker("db1")
        processes.worker("db2")
        yield processes


def written(directory: Path) -> Path:
    path = directory / "two-machines.toml"
    path.write_text(FLEET)
    return path


def test_a_fleet_is_run_once_and_reported(dask: DaskProcesses) -> None:
    file = written(dask.home)
    run = (sys.executable, "-m", "pgdyno", "fleet", "run", str(file), "--scheduler", dask.address)
    done = dask.run(*run, "--json")
    assert done.returncode == 0, done.stderr
    machines = json.loads(done.stdout)["machines"]
    assert [(one["machine"], one["reason"]) for one in machines] == [("db1", None), ("db2", None)]
    bundles = [Path(one["bundle"]) for one in machines]
    kept = [one.read_bytes() for one in bundles]
    again = dask.run(*run)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines() == [
        f"db1: {bundles[0]}",
        f"db2: {bundles[1]}",
        f"The results: pgdyno fleet report {file}",
    ]
    assert "to go" not in again.stderr  # nothing was measured again
    assert [one.read_bytes() for one in bundles] == kept
    report = dask.run(sys.executable, "-m", "pgdyno", "fleet", "report", str(file))
    if report.returncode:  # the machine was busy: no effect has a result on both
        assert "no two of them have a result for the same metric" in report.stderr
        assert_says_why(report.stderr)
        return
    assert report.stdout.startswith("2 machines, 2 experiments\n")
    assert "db1 and db2 have matching processors, caches and memory" in " ".join(report.stdout.split())
    if "throughput of more against default" not in report.stdout:
        assert_says_why(report.stdout)


def assert_says_why(report: str) -> None:
    """Throughput drifted on a busy machine, or has too few blocks: then it is not combined, and named."""
    assert re.search(
        r"db[12] .*, more against default on pgbench-select: throughput \((withheld|only)", report
    )


def test_one_machine_measures_here_without_dask(tmp_path: Path, home: Path) -> None:
    file = written(tmp_path)
    done = pgdyno("fleet", "run", str(file), "--here", "db1", "--json")
    assert done.returncode == 0, done.stderr
    (machine,) = json.loads(done.stdout)["machines"]
    bundle = Path(machine["bundle"])
    assert (machine["machine"], bundle.parent) == ("db1", home / "fleets" / "two-machines")
    again = pgdyno("fleet", "run", str(file), "--here", "db1")
    assert again.stdout.startswith(f"db1: {bundle}\n")
    assert "measuring" not in again.stderr
    shutil.rmtree(bundle.parent)
