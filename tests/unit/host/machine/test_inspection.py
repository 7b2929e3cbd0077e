"""The machine that the tests run on, against what Python's standard library says about it."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from pathlib import Path

import pytest
from tests.fix_servers import RealServer
from tests.unit.host.machines import FixtureTree, load

from pgdyno.base.facts import unknown
from pgdyno.host.machine.inspection import inspect_host, inspect_tree


def test_the_running_host_is_what_the_standard_library_says() -> None:
    host = inspect_host()
    assert host.hostname.value == platform.node()
    assert host.kernel.release.value == platform.release()
    assert host.cpu.architecture.value == platform.machine()
    assert host.cpu.logical_count.value == os.cpu_count()
    assert host.memory.page_bytes.value == os.sysconf("SC_PAGE_SIZE")
    assert host.limits.cpuset.value == tuple(sorted(os.sched_getaffinity(0)))


def test_the_running_process_has_the_limits_that_the_kernel_enforces() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert inspect_host().limits.rlimits.or_else({})["Max open files"] == str(soft)


def test_free_space_is_that_of_the_data_directorys_file_system(tmp_path: Path) -> None:
    (mount,) = inspect_host(data_directory=tmp_path).mounts.or_else(())
    total = shutil.disk_usage(tmp_path).total
    assert str(tmp_path).startswith(mount.target)
    assert 0 <= mount.available_bytes.or_else(-1) <= total


def test_a_data_directory_is_stated_where_the_postmasters_may_not_be_read() -> None:
    machine = load("bare-metal-2-socket")
    tree = FixtureTree(machine.tree.root, ("/proc/2113/cwd",))
    (mount,) = inspect_tree(tree, pid=2113, data_directory=Path("/pgdata/other")).mounts.or_else(())
    assert mount.target == "/pgdata"
    assert inspect_tree(tree, pid=2113).mounts == unknown("permission denied", "/proc/2113/cwd")


@pytest.mark.server
def test_a_running_servers_limits_and_mount_are_found_by_its_postmaster(pg18: RealServer) -> None:
    host = inspect_host(pid=pg18.pid)
    assert host.limits.rlimits.source == f"/proc/{pg18.pid}/limits"
    (mount,) = host.mounts.or_else(())
    assert str(pg18.data_directory).startswith(mount.target)
