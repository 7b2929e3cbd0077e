"""What every workload file must keep."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from pgdyno.model.experiment import ResetPolicy
from pgdyno.model.workload import Workload
from pgdyno.workloads import load

WORKLOADS = list(load().values())


@pytest.fixture(params=WORKLOADS, ids=lambda workload: workload.name)
def workload(request: pytest.FixtureRequest) -> Workload:
    found = request.param
    assert isinstance(found, Workload)
    return found


def test_names_are_unique_and_begin_with_where_they_come_from(workload: Workload) -> None:
    assert [w.name for w in WORKLOADS].count(workload.name) == 1
    assert workload.name.startswith(f"{workload.generators[-1]}-")


def test_our_driver_issues_it_and_the_program_that_it_comes_from_can(workload: Workload) -> None:
    assert workload.generator == workload.generators[0] == "driver"
    assert bool(workload.scripts) == ("pgbench" in workload.generators)
    assert bool(workload.lua_script) == ("sysbench" in workload.generators)


def test_the_driver_knows_it_by_the_same_name(workload: Workload) -> None:
    program = Path(sysconfig.get_path("scripts")) / "pgdyno-driver"
    known = subprocess.run([program, "workloads"], capture_output=True, text=True, check=True).stdout
    assert workload.name in known.split()


def test_its_data_is_several_times_the_default_shared_buffers(workload: Workload) -> None:
    assert workload.data_set.size_bytes > 3 * 128 * 1024 * 1024


def test_only_reading_workloads_keep_their_data(workload: Workload) -> None:
    reads = "select" in workload.name or "read-only" in workload.name
    assert (workload.reset is ResetPolicy.KEEP) == reads


def test_workloads_of_a_generator_share_one_data_set() -> None:
    for generator in ("pgbench", "sysbench"):
        assert len({w.data_set.key for w in WORKLOADS if generator in w.generators}) == 1
