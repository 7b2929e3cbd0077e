"""Huge pages of every kind, given to real servers by this machine's kernel, and taken back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_machine import (
    LENDING,
    POOL,
    POOL_1GB,
    SURPLUS,
    THP_POLICY,
    THP_SHARED,
    Machine,
    nothing_beside,
)
from tests.fix_servers import RealServer, running_server

from pgdyno.apply.host_state import HostState
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.base.errors import SettingError
from pgdyno.host.host import Host
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import InspectedServer, inspect_dsn
from pgdyno.plan.levers._contract import PlanContext, State

pytestmark = [pytest.mark.server, pytest.mark.root]

LEVERS = levers.load()
MB_IN_KB = 1024
PAGES_TO_LEND = "1024"  # far more than the test's server borrows: another test's may start meanwhile

# Touches 8 MB of its own memory, and says how much of that lies on transparent huge pages.
TOUCHING = """
import mmap, re
memory = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.write(bytes(8 << 20))
print(sum(map(int, re.findall(r"^AnonHugePages: +(\\d+) kB", open("/proc/self/smaps").read(), re.M))))
"""


def holding(journal: Path, files: Mapping[str, str]) -> AbstractContextManager[object]:
    """Give the machine these values meanwhile."""
    return HostState(journal, host_writers()).holding(files)


@pytest.fixture
def stopped(pg18_bin: Path, machine: Machine) -> Iterator[RealServer]:
    """A PostgreSQL 18 that is not running; it ends before the machine is compared with what it was."""
    with running_server(pg18_bin) as server:
        server.stop()
        yield server


def mapped_kb(server: RealServer, name: str) -> int:
    """Return what the kernel says of all the postmaster's mappings together."""
    told = Path(f"/proc/{server.pid}/smaps").read_text()
    return sum(map(int, re.findall(rf"^{name}: +(\d+) kB$", told, re.MULTILINE)))


def page_sizes(server: RealServer) -> set[str]:
    told = Path(f"/proc/{server.pid}/smaps").read_text()
    return set(re.findall(r"^KernelPageSize: +(\d+ kB)$", told, re.MULTILINE))


def number(path: str) -> int:
    return int(Path(path).read_text())


def context(server: RealServer) -> PlanContext:
    found = inspect_dsn(server.dsn, Figures())
    assert isinstance(found.host, Host)
    assert isinstance(found.inspected, InspectedServer)
    return PlanContext(
        settings=EffectiveSettings(found.inspected.server),
        resources=found.inspected.resources,
        host=found.host,
    )


def test_a_server_takes_pages_of_one_gigabyte(stopped: RealServer, tmp_path: Path) -> None:
    if not Path(POOL_1GB).exists():
        pytest.skip("this processor has no pages of 1 GB")
    if number(POOL_1GB) != 0:
        pytest.skip("this machine has huge pages of its own")
    with ExitStack() as stack:
        try:
            stack.enter_context(holding(tmp_path, {POOL_1GB: "1"}))
        except SettingError as error:
            pytest.skip(f"{error.message}: {error.detail}")
        assert number(POOL_1GB) == 1
        stopped.start(["-c", "huge_pages=on", "-c", "huge_page_size=1GB"])
        assert stopped.execute("SHOW huge_pages_status") == [("on",)]
        assert "1048576 kB" in page_sizes(stopped)
        detected = LEVERS["huge_page_pool"].detect(context(stopped))
        assert (detected.state, detected.detail) == (
            State.ON,
            "1 pages of 1\xa0GB are free or held by the server; it needs 1",
        )
        stopped.stop()
    assert number(POOL_1GB) == 0


@nothing_beside
def test_pages_that_the_kernel_lends_are_back_when_the_server_ends(
    stopped: RealServer, tmp_path: Path
) -> None:
    if number(POOL) != 0 or number(LENDING) != 0:
        pytest.skip("this machine has huge pages of its own")
    with holding(tmp_path, {LENDING: PAGES_TO_LEND}):
        before = number(SURPLUS)
        stopped.start(["-c", "huge_pages=on"])
        assert "2048 kB" in page_sizes(stopped)
        pages = int(stopped.execute("SHOW shared_memory_size_in_huge_pages")[0][0])
        assert number(SURPLUS) >= before + pages
        stopped.stop()
    assert number(LENDING) == 0


@nothing_beside
def test_a_server_that_does_not_say_so_is_seen_to_hold_huge_pages(
    pg15_bin: Path, tmp_path: Path, machine: Machine
) -> None:
    if number(POOL) != 0 or number(LENDING) != 0:
        pytest.skip("this machine has huge pages of its own")
    with holding(tmp_path, {LENDING: PAGES_TO_LEND}), running_server(pg15_bin) as server:
        server.restart(["-c", "huge_pages=on"])
        ctx = context(server)
        pages = int(server.execute("SHOW shared_memory_size_in_huge_pages")[0][0])
        assert ctx.server.program.has_huge_pages.value is True
        pool = ctx.resources.huge_pages.or_none()
        assert pool is not None
        assert pool.usable >= pages
        # As 14, which does not tell the number either, but in its allocations.
        told = {k: v for k, v in ctx.server.settings.items() if not k.startswith("shared_memory_size")}
        as_14 = replace(ctx.server, settings=told)
        assert -(-as_14.shared_memory_bytes.or_else(0) // (2 << 20)) == pages
        server.restart(["-c", "huge_pages=off"])
        assert context(server).server.program.has_huge_pages.value is False


def test_shared_memory_takes_transparent_huge_pages_where_it_is_given_them(
    stopped: RealServer, tmp_path: Path
) -> None:
    if not Path(THP_SHARED).exists():
        pytest.skip("this kernel has no transparent huge pages for shared memory")
    mapped = {}
    for choice in ("never", "always"):
        with holding(tmp_path, {THP_SHARED: choice}):
            stopped.start(["-c", "huge_pages=off"])
            mapped[choice] = mapped_kb(stopped, "ShmemPmdMapped")
            reported = LEVERS["shmem_huge_pages"].detect(context(stopped))
            assert (reported.state is State.ON) == (choice == "always")
            stopped.stop()
    assert mapped["never"] == 0
    assert mapped["always"] >= 2 * MB_IN_KB


@pytest.mark.parametrize(
    ("choice", "least_kb", "most_kb"),
    [("always", 2 * MB_IN_KB, 8 * MB_IN_KB), ("madvise", 0, 0), ("never", 0, 0)],
)
def test_the_policy_decides_who_is_given_transparent_huge_pages(
    machine: Machine, tmp_path: Path, choice: str, least_kb: int, most_kb: int
) -> None:
    with holding(tmp_path, {THP_POLICY: choice}):
        done = subprocess.run(
            [sys.executable, "-c", TOUCHING], capture_output=True, text=True, check=True, timeout=250
        )
    assert least_kb <= int(done.stdout) <= most_kb
