"""Future WAL segments of a real server: it writes into them, and creates none itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import ServerError, SettingError, StorageError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import wal_kept
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.registry import installation_in
from pgdyno.postgres.process.wal_segments import preallocate_segments
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.workload.bundled import load as bundled_workloads

pytestmark = pytest.mark.server

MB = 1 << 20
SIMPLE_UPDATE = bundled_workloads()["pgbench-simple-update"]
SMALL = replace(SIMPLE_UPDATE.data_set, scale=1)
WRITTEN_MB = 80  # by the server, of the 160 MB that it gets
CREATED = "SELECT sum(writes)::int FROM pg_stat_io WHERE object = 'wal' AND context = 'init'"


@pytest.fixture
def scratch(workspace: Workspace) -> Iterator[Path]:
    with workspace.scratch() as path:
        yield path


@pytest.fixture
def instance(workspace: Workspace, installation: Installation, scratch: Path) -> Iterator[Instance]:
    with workspace.sockets(scratch) as sockets:
        initialise(installation, workspace.account, scratch / "data")
        # Checkpoints make segments ahead as well: none happens here.
        settings = {"max_wal_size": "1GB", "checkpoint_timeout": "1h"}
        made = Instance(installation, workspace.account, scratch / "data", sockets, 5998, settings)
        yield made
        made.stop(is_immediate=True)


def segments_created(instance: Instance) -> int:
    """Start the server, let it write 80 MB of WAL, and return how many segments it has created."""
    instance.start()
    with instance.connect() as connection:
        before = connection.execute(CREATED).fetchone()
        for _ in range(WRITTEN_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 1024 * 1024))")
        connection.execute("SELECT pg_stat_force_next_flush()")
    with instance.connect() as connection:
        after = connection.execute(CREATED).fetchone()
    assert before is not None
    assert after is not None
    created: int = after[0] - before[0]
    return created


def test_a_server_without_segments_creates_them(instance: Instance) -> None:
    assert segments_created(instance) in (5, 6)  # 80 MB in files of 16 MB


def test_a_server_with_segments_writes_into_them_and_creates_none(
    instance: Instance, workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    wal = instance.data_directory / "pg_wal"
    found = {path.name for path in wal.iterdir()}
    preallocate_segments(installation, workspace.account, instance.data_directory, scratch, 10 * 16 * MB)
    made = sorted(path for path in wal.iterdir() if path.name not in found)
    assert len(made) == 10
    owner = instance.data_directory.stat().st_uid
    for path in made:
        status = path.stat()
        assert (status.st_size, status.st_uid, status.st_mode & 0o777) == (16 * MB, owner, 0o600)
        assert path.read_bytes().count(0) == 16 * MB
    inodes = [path.stat().st_ino for path in made]
    assert segments_created(instance) == 0
    assert [path.stat().st_ino for path in made] == inodes
    assert [any(path.read_bytes()[:8192]) for path in made] == [True] * 5 + [False] * 5


def test_segments_that_are_there_are_left_alone(
    instance: Instance, workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    wal = instance.data_directory / "pg_wal"
    preallocate_segments(installation, workspace.account, instance.data_directory, scratch, 16 * MB)
    before = {path.name: path.stat().st_ino for path in wal.iterdir()}
    preallocate_segments(installation, workspace.account, instance.data_directory, scratch, 20 * MB)
    after = {path.name: path.stat().st_ino for path in wal.iterdir()}
    assert len(after) == len(before) + 1  # 20 MB take two, one of which is there
    assert after.items() >= before.items()


def test_a_directory_without_control_file_is_named(
    workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    with pytest.raises(ServerError) as caught:
        preallocate_segments(installation, workspace.account, scratch, scratch, 16 * MB)
    assert caught.value.message == f'pg_controldata could not read "{scratch}"'
    assert "pg_control" in (caught.value.detail or "")


def test_a_segment_that_cannot_be_written_is_an_error(
    instance: Instance, workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    wal = instance.data_directory / "pg_wal"
    wal.rename(wal.with_name("elsewhere"))
    with pytest.raises(StorageError) as caught:
        preallocate_segments(installation, workspace.account, instance.data_directory, scratch, 16 * MB)
    assert caught.value.message == "could not write a WAL segment"
    assert "No such file or directory" in (caught.value.detail or "")


@pytest.mark.parametrize(
    ("settings", "kept_mb"),
    [
        ({}, 500),
        ({"min_wal_size": "4GB"}, 500),
        ({"min_wal_size": "80MB"}, 500),
        ({"MIN_WAL_SIZE": "32MB"}, 32),
        ({"min_wal_size": "64"}, 64),  # its unit is MB
        ({"min_wal_size": "32768kB"}, 32),
    ],
)
def test_only_who_asks_for_less_than_the_default_lacks_segments(
    settings: dict[str, str], kept_mb: int
) -> None:
    assert wal_kept(Variant("one", settings), 500 * MB) == kept_mb * MB


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match="min_wal_size"):
        wal_kept(Variant("one", {"min_wal_size": "much"}), 500 * MB)


def test_a_variant_without_segments_makes_them_and_another_does_not(home: Path, pg18_bin: Path) -> None:
    assert home.is_dir()
    lacking, ready = Variant("lacking", {"min_wal_size": "32MB"}), Variant("ready")
    data_set = SMALL
    with open_scratch_arena(installation_in(pg18_bin), [lacking, ready], Lines(), is_isolated=False) as arena:
        arena.restore([lacking, ready], [0, 1], data_set, writing_s=10.0)
        with arena.arms([lacking, ready], [0, 1], data_set) as arms:
            made = [_made_while_writing(arm) for arm in arms]
    assert made[0] >= 3  # 96 MB, less two segments that it keeps, and one that may have been begun
    assert made[1] == 0


def _made_while_writing(arm: Arm) -> float:
    (before,) = arm.query(CREATED)
    for _ in range(96):
        arm.query("SELECT 1 FROM pg_logical_emit_message(false, 'test', repeat('x', 1024 * 1024))")
    arm.query("SELECT 1 FROM (SELECT pg_stat_force_next_flush()) AS flushed")
    (after,) = arm.query(CREATED)
    return (after or 0.0) - (before or 0.0)
