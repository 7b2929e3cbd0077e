"""What every workload file must keep."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from pgdyno.model.experiments.workload import (
    DriverScript,
    PgbenchScripts,
    ResetPolicy,
    SysbenchScript,
    Workload,
)
from pgdyno.workload.bundled import load

WORKLOADS = list(load().values())
KINDS = {"pgbench": PgbenchScripts, "sysbench": SysbenchScript}
OURS = {"pgbench-aggregate"}  # on tables of another program
SHARED_BUFFERS_BYTES = 128 << 20  # the default


@pytest.fixture(params=WORKLOADS, ids=lambda workload: workload.name)
def workload(request: pytest.FixtureRequest) -> Workload:
    found = request.param
    assert isinstance(found, Workload)
    return found


def test_names_are_unique_and_begin_with_where_they_come_from(workload: Workload) -> None:
    assert [w.name for w in WORKLOADS].count(workload.name) == 1
    assert workload.name.startswith(f"{_origin(workload)}-")


def test_our_driver_issues_it_and_the_program_that_it_comes_from_can(workload: Workload) -> None:
    assert workload.generator == workload.generators[0] == "driver"
    origin = workload.name.split("-")[0]
    is_ours = origin == "scan" or workload.name in OURS
    assert type(workload.kind) is (DriverScript if is_ours else KINDS[origin])
    assert workload.generators == (("driver",) if is_ours else ("driver", origin))


def test_the_driver_knows_it_by_the_same_name(workload: Workload) -> None:
    program = Path(sysconfig.get_path("scripts")) / "pgdyno-driver"
    known = subprocess.run([program, "workloads"], capture_output=True, text=True, check=True).stdout
    assert workload.driver_name in known.split()


def test_its_data_is_several_times_the_default_shared_buffers_unless_it_is_called_cached(
    workload: Workload,
) -> None:
    if workload.name.endswith("-cached"):
        assert workload.data_set.size_bytes < 0.75 * SHARED_BUFFERS_BYTES
    else:
        assert workload.data_set.size_bytes > 3 * SHARED_BUFFERS_BYTES


def test_data_on_the_disk_is_several_times_what_the_servers_memory_holds(workload: Workload) -> None:
    assert (workload.server_memory_bytes is not None) == workload.name.endswith("-io-bound")
    if workload.server_memory_bytes is not None:
        assert workload.server_memory_bytes > 2 * SHARED_BUFFERS_BYTES
        assert workload.data_set.size_bytes > 3 * workload.server_memory_bytes


def test_only_reading_workloads_keep_their_data(workload: Workload) -> None:
    reads = any(word in workload.name for word in ("select", "read-only", "scan", "aggregate"))
    assert (workload.reset is ResetPolicy.KEEP) == reads


def test_workloads_of_a_generator_share_one_data_set() -> None:
    for generator in ("pgbench", "sysbench"):
        assert len({w.data_set.key for w in WORKLOADS if generator in w.generators}) == 1


def test_equal_scans_differ_in_their_data_alone() -> None:
    by_size = {}
    for size in ("cached", "page-cache", "io-bound"):
        names = [w.name.removesuffix(f"-{size}") for w in WORKLOADS if w.name.endswith(f"-{size}")]
        by_size[size] = names
        assert len({w.data_set.key for w in WORKLOADS if w.name.endswith(f"-{size}")}) == 1
    assert by_size["cached"] == by_size["page-cache"] == by_size["io-bound"]
    assert by_size["cached"] == ["scan-bitmap", "scan-index", "scan-point", "scan-sequential"]


def _origin(workload: Workload) -> str:
    """Where a workload comes from; those of nobody else are scans, or say whose tables they read."""
    if workload.name in OURS:
        return workload.data_set.name
    return "scan" if workload.generators == ("driver",) else workload.generators[-1]
