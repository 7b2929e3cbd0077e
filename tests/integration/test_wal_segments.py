"""Future WAL segments of a real server: it writes into them, and creates none itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.model.errors import ServerError, StorageError
from pgdyno.server.installation import Installation
from pgdyno.server.instance import Instance, initialise
from pgdyno.server.wal_segments import fill_ahead
from pgdyno.server.workspace import Workspace

pytestmark = pytest.mark.server

MB = 1 << 20
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
    fill_ahead(installation, workspace.account, instance.data_directory, scratch, 10 * 16 * MB)
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
    fill_ahead(installation, workspace.account, instance.data_directory, scratch, 16 * MB)
    before = {path.name: path.stat().st_ino for path in wal.iterdir()}
    fill_ahead(installation, workspace.account, instance.data_directory, scratch, 20 * MB)
    after = {path.name: path.stat().st_ino for path in wal.iterdir()}
    assert len(after) == len(before) + 1  # 20 MB take two, one of which is there
    assert after.items() >= before.items()


def test_a_directory_without_control_file_is_named(
    workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    with pytest.raises(ServerError) as caught:
        fill_ahead(installation, workspace.account, scratch, scratch, 16 * MB)
    assert caught.value.message == f'pg_controldata could not read "{scratch}"'
    assert "pg_control" in (caught.value.detail or "")


def test_a_segment_that_cannot_be_written_is_an_error(
    instance: Instance, workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    wal = instance.data_directory / "pg_wal"
    wal.rename(wal.with_name("elsewhere"))
    with pytest.raises(StorageError) as caught:
        fill_ahead(installation, workspace.account, instance.data_directory, scratch, 16 * MB)
    assert caught.value.message == "could not write a WAL segment"
    assert "No such file or directory" in (caught.value.detail or "")
