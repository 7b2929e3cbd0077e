"""What attaches to a server's processes: CPUs, a scheduling policy, another malloc; on real servers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, wait_until

from pgdyno.host.host import Host
from pgdyno.model.variants.variant import parse_variant
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import InspectedServer, inspect_dsn
from pgdyno.plan.levers._contract import Detected, PlanContext, State
from pgdyno.postgres.inspection.program import inspect_program
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server

LEVERS = levers.load()
KB_OF_64_MB = 64 * 1024


def detected(lever: str, server: RealServer) -> Detected:
    """Return what a lever finds in a running server."""
    found = inspect_dsn(server.dsn, Figures())
    assert isinstance(found.host, Host)
    assert isinstance(found.inspected, InspectedServer)
    settings = EffectiveSettings(found.inspected.server)
    return LEVERS[lever].detect(
        PlanContext(settings=settings, resources=found.inspected.resources, host=found.host)
    )


def run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: apt install util-linux")
    subprocess.run(command, check=True, capture_output=True, timeout=250)


def status(pid: int, name: str) -> str:
    """Return one line of /proc/PID/status."""
    found = re.search(rf"^{name}:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def walwriter(server: RealServer) -> int:
    sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
    wait_until(lambda: server.execute(sql) != [])  # the server answers before all of its processes have begun
    return int(server.execute(sql)[0][0])


def test_a_server_and_its_walwriter_are_confined_to_cpus(scratch_pg18: RealServer) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("with one CPU nothing can be confined")
    first, last = str(cpus[0]), str(cpus[-1])
    run("taskset", "-cp", last, str(walwriter(scratch_pg18)))
    assert status(walwriter(scratch_pg18), "Cpus_allowed_list") == last
    assert status(scratch_pg18.pid, "Cpus_allowed_list") != last
    run("taskset", "-cp", first, str(scratch_pg18.pid))
    with psycopg.connect(scratch_pg18.dsn) as connection:
        assert status(connection.info.backend_pid, "Cpus_allowed_list") == first
    found = detected("cpu_pinning", scratch_pg18)
    assert found.state is State.ON
    assert found.detail == (
        f"reported only: the server may use 1 of {os.cpu_count()} CPUs (/proc/{scratch_pg18.pid}/status)"
    )


def test_backends_inherit_the_policy_that_the_server_was_started_under(scratch_pg18: RealServer) -> None:
    assert detected("sched_batch", scratch_pg18).state is State.OFF
    run("chrt", "--batch", "--pid", "0", str(scratch_pg18.pid))
    with psycopg.connect(scratch_pg18.dsn) as connection:
        assert os.sched_getscheduler(connection.info.backend_pid) == os.SCHED_BATCH
    assert detected("sched_batch", scratch_pg18) == Detected(State.ON, "the server runs under SCHED_BATCH")


@contextmanager
def started_as(variant: str, bin_directory: Path, home: Path) -> Iterator[Instance]:
    """Start a server with the environment and the policy that a variant names, as an experiment does."""
    account = current_account()
    workspace, parsed = Workspace(home, account), parse_variant(variant)
    installation = installation_at(bin_directory, account)
    with workspace.scratch() as scratch, workspace.sockets(scratch) as sockets:
        initialise(installation, account, scratch / "data")
        instance = Instance(
            installation,
            account,
            scratch / "data",
            sockets,
            5998,
            environment={**os.environ, **parsed.environment},
            scheduling_policy=parsed.scheduling_policy,
        )
        instance.start()
        try:
            yield instance
        finally:
            instance.stop(is_immediate=True)


def test_a_variant_gives_a_server_and_its_backends_a_scheduling_policy(pg18_bin: Path, home: Path) -> None:
    with started_as("batch:process.scheduling_policy=batch", pg18_bin, home) as instance:
        assert os.sched_getscheduler(instance.pid) == os.SCHED_BATCH
        with instance.connect() as connection:
            assert os.sched_getscheduler(connection.info.backend_pid) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.parametrize(
    ("library", "name", "package"),
    [
        ("libjemalloc.so.2", "jemalloc", "libjemalloc2"),
        ("libmimalloc.so.2.0", "mimalloc", "libmimalloc2.0"),
        ("libtcmalloc_minimal.so.4", "tcmalloc", "libtcmalloc-minimal4"),
    ],
)
def test_a_variant_gives_a_server_another_malloc(
    pg18_bin: Path, home: Path, library: str, name: str, package: str
) -> None:
    path = next(map(str, Path("/usr/lib").glob(f"*/{library}")), None)
    if path is None:
        pytest.skip(f"{library} is not installed: apt install {package}")
    with started_as(f"other:env.LD_PRELOAD={library}", pg18_bin, home) as instance:
        with instance.connect() as connection:
            assert path in maps(connection.info.backend_pid)
        assert instance.pid is not None
        program = inspect_program(Path("/"), instance.pid)
        assert program.allocator.value == name
        assert program.malloc_variables.or_else({})["LD_PRELOAD"] == library


@pytest.mark.parametrize(
    "setting", ["env.MALLOC_TOP_PAD_=67108864", "env.GLIBC_TUNABLES=glibc.malloc.top_pad=67108864"]
)
def test_a_variant_tells_glibc_how_much_to_take_at_once(pg18_bin: Path, home: Path, setting: str) -> None:
    with started_as(f"padded:{setting}", pg18_bin, home) as instance:
        assert instance.pid is not None
        if inspect_program(Path("/"), instance.pid).allocator.value != "glibc":
            pytest.skip("this server has another C library's malloc")
        assert heap_kb(instance.pid) >= KB_OF_64_MB


def test_without_it_a_server_takes_less_at_once(pg18: RealServer) -> None:
    assert heap_kb(pg18.pid) < KB_OF_64_MB


def heap_kb(pid: int) -> int:
    """Return the size of a process's heap."""
    ((start, end),) = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .*\[heap\]$", maps(pid), re.MULTILINE)
    return (int(end, 16) - int(start, 16)) // 1024
