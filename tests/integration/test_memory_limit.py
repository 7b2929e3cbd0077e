"""A server whose memory is limited by a control group really reads from disk what does not fit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_home import home_below, pgdyno
from tests.fix_servers import wait_until

from pgdyno.base.errors import PrivilegeError, ServerCrashedError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import memory_group_place
from pgdyno.postgres.process.memory_limit import (
    GroupPlace,
    MemoryGroup,
    drop_from_page_cache,
    group_name,
    remove_recorded,
)
from pgdyno.postgres.process.registry import installation_in
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server

LIMIT_BYTES = 64 << 20
TABLE_BYTES = 96 << 20
EMPTY = DataSet(name="empty", scale=1, bytes_per_scale=0)
SETTINGS = {"shared_buffers": "8MB", "max_connections": "20"}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home on a disk: files in memory are never read from one."""
    with home_below(Path("/var/tmp")) as path:
        yield path


@pytest.fixture
def place() -> GroupPlace:
    try:
        found = memory_group_place()
        probe = Path(tempfile.mkdtemp(prefix="pgdyno-probe-", dir=found.directory))
    except (PrivilegeError, OSError) as error:
        pytest.skip(f"no control group can be made here: {error}")
    probe.rmdir()
    return found


@pytest.fixture
def instance(pg18_bin: Path, home: Path, place: GroupPlace) -> Iterator[Instance]:
    workspace = Workspace(home, current_account())
    installation: Installation = installation_at(pg18_bin, workspace.account)
    with workspace.scratch() as scratch, workspace.sockets(scratch) as sockets:
        initialise(installation, workspace.account, scratch / "data")
        name = group_name(scratch, "data")
        group = MemoryGroup(place, name, LIMIT_BYTES, scratch / "data.memory-group")
        made = Instance(
            installation, workspace.account, scratch / "data", sockets, 5998, SETTINGS, memory=group
        )
        yield made
        made.stop(is_immediate=True)


def fill(instance: Instance) -> None:
    with instance.connect() as connection:
        connection.execute(
            "CREATE TABLE rows AS SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) AS i"
        )
        connection.execute("CHECKPOINT")


def scan_reads_bytes(connection: psycopg.Connection) -> int:
    """Return what a scan of the table has read from storage, by the kernel's account of the backend."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    connection.execute("SET max_parallel_workers_per_gather = 0")
    connection.execute("SET io_combine_limit = 1")
    before = read_bytes(row[0])
    connection.execute("SELECT count(*) FROM rows")
    return read_bytes(row[0]) - before


def read_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes:")).split()[1])


def test_what_does_not_fit_is_read_from_disk_again_and_again_and_the_group_goes_with_the_server(
    instance: Instance,
) -> None:
    instance.settings = {**SETTINGS, "io_method": "sync"}
    instance.start()
    assert instance.memory is not None
    group = instance.memory.directory
    assert str(instance.pid) in (group / "cgroup.procs").read_text().split()
    fill(instance)
    with instance.connect() as connection:
        scan_reads_bytes(connection)
        assert scan_reads_bytes(connection) > TABLE_BYTES - LIMIT_BYTES
    instance.stop()
    assert not group.exists()
    assert not instance.memory.record.exists()


def test_a_server_pays_for_pages_that_were_cached_before_it_started(instance: Instance) -> None:
    instance.settings = {**SETTINGS, "io_method": "sync"}
    group, instance.memory = instance.memory, None
    instance.start()
    fill(instance)
    instance.stop()
    drop_from_page_cache(instance.data_directory)
    instance.memory = group
    instance.start()
    with instance.connect() as connection:
        assert scan_reads_bytes(connection) > TABLE_BYTES


def test_a_killed_runs_group_and_the_server_in_it_are_cleared_away(instance: Instance) -> None:
    instance.start()
    assert instance.memory is not None
    remove_recorded(instance.memory.record.parent)
    assert not instance.memory.directory.exists()  # the kernel keeps a group that still has processes
    with pytest.raises(ServerCrashedError):
        instance.require_running()


def test_a_program_that_could_not_be_started_leaves_no_group(instance: Instance) -> None:
    instance.environment = {"not=a name": ""}
    with pytest.raises(ValueError, match="illegal environment variable name"):
        instance.start()
    assert instance.memory is not None
    assert not instance.memory.directory.exists()
    assert not instance.memory.record.exists()


def test_what_outlives_the_postmaster_goes_with_the_group(instance: Instance) -> None:
    instance.start()
    assert instance.memory is not None
    with subprocess.Popen(instance.memory.command(["sleep", "60"])) as left:
        wait_until(lambda: str(left.pid) in members(instance))
        instance.stop(is_immediate=True)
        assert left.wait(120) == -signal.SIGKILL
    assert not instance.memory.directory.exists()


def members(instance: Instance) -> list[str]:
    assert instance.memory is not None
    return (instance.memory.directory / "cgroup.procs").read_text().split()


def test_a_group_that_was_left_goes_with_its_scratch_directory(home: Path, place: GroupPlace) -> None:
    with Workspace(home, current_account()).scratch() as scratch:
        record = scratch / "seat.memory-group"
        left = MemoryGroup(place, group_name(scratch, "seat"), LIMIT_BYTES, record)
        left.create()
    assert not left.directory.exists()
    assert not scratch.exists()


@pytest.mark.usefixtures("place", "home")
def test_a_kill_for_memory_while_a_server_starts_is_told(pg18_bin: Path) -> None:
    variant, data_set = Variant("default", {"shared_buffers": "512MB"}), EMPTY
    installation = installation_in(pg18_bin)
    with open_scratch_arena(installation, [variant], Lines(), is_isolated=False) as arena:
        arena.restore([variant], [0], data_set)
        with pytest.raises(ServerCrashedError) as caught, arena.arms([variant], [0], data_set, 4 << 20):
            pass
    assert caught.value.message == (
        "the kernel killed a process of a server that exceeded its memory limit of 4\xa0MB"
    )


def test_a_kill_for_memory_is_counted(instance: Instance) -> None:
    instance.start()
    assert instance.memory is not None
    assert instance.memory.kills() == 0
    eater = "data = bytearray(200 << 20)"
    done = subprocess.run(instance.memory.command([sys.executable, "-c", eater]), check=False)
    assert done.returncode == -signal.SIGKILL
    assert instance.memory.kills() == 1
    instance.stop(is_immediate=True)
    assert instance.memory_kills() == 1  # the kernel's own count is gone


@pytest.mark.usefixtures("place", "home")
def test_an_io_bound_preset_says_how_memory_is_limited_and_measures_the_step_asked_for() -> None:
    small = ("run", "insert-benchmark", "--embedded", "--preset", "io-bound-quick", "--rows", "2000/400/100")
    step = ("--step", "qr100", "--blocks", "1")
    done = pgdyno(*small, *step, "--step-seconds", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["blocks"] >= 1  # on a busy machine a void one is repeated
    notes = document["notes"]
    assert any("preset io-bound-quick, 2 clients, 2000/400/100 rows" in note for note in notes)
    assert any(
        note.startswith("the server's memory, page cache included, is limited to 96\xa0MB by cgroup v")
        for note in notes
    )
    assert not any("NOT DURABLE" in note for note in notes)
    assert "insert-benchmark-l.i2 on default, not measured" in done.stderr
    resumed = pgdyno(*small, *step, "--step-seconds", "2", "--resume", document["experiment"])
    assert resumed.returncode == 2
    assert "was run in a different mode or at a different size" in resumed.stderr


@pytest.mark.usefixtures("place", "home")
def test_shared_buffers_that_do_not_fit_into_the_limit_are_refused() -> None:
    done = pgdyno(
        *("run", "insert-benchmark", "--embedded", "--preset", "io-bound-quick"),
        *("--factor", "shared_buffers=16MB,1GB"),
    )
    assert done.returncode == 4
    assert "the server of shared_buffers.1GB does not fit into its memory limit of 96\xa0MB" in done.stderr
