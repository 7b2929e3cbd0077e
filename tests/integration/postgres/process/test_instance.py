"""A server that is started on a new cluster."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_servers import wait_until
from tests.integration.measure.arenas.test_scratch_arena import PORT

from pgdyno.base.errors import DataDirectoryError, ServerError, ServerStartError
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.processes import children
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, workspace: Workspace) -> Workspace:
    """Return a workspace that no other test uses, where the servers' account can reach it."""
    root = workspace.root / tmp_path_factory.mktemp("own").name
    root.mkdir(mode=0o755)
    return Workspace(root, workspace.account)


def test_a_server_takes_interrupts_from_its_beginning_where_pgdyno_ignores_them(
    place: Workspace, installation: Installation
) -> None:
    """A script's background jobs ignore them, and so would the programs that they start."""
    programs = place.installations()
    (programs / "postgres").write_text("#!/bin/sh\ngrep SigIgn /proc/$$/status\n")
    (programs / "postgres").chmod(0o755)
    with place.scratch() as scratch:
        (scratch / "data").mkdir()
        (scratch / "data/PG_VERSION").write_text(f"{installation.major}\n")
        server = Instance(
            replace(installation, bin_directory=programs), place.account, scratch / "data", scratch, 5432
        )
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with pytest.raises(ServerStartError) as caught:
                server.start()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)
    name, _, ignored = (caught.value.detail or "").partition(":")
    assert name == "SigIgn"
    assert int(ignored, 16) & 1 << (signal.SIGINT - 1) == 0


@pytest.fixture
def scratch(workspace: Workspace) -> Iterator[Path]:
    with workspace.scratch() as path:
        yield path


@pytest.fixture
def instance(workspace: Workspace, installation: Installation, scratch: Path) -> Iterator[Instance]:
    with workspace.sockets(scratch) as sockets:
        initialise(installation, workspace.account, scratch / "data")
        made = Instance(installation, workspace.account, scratch / "data", sockets, PORT)
        yield made
        made.stop(is_immediate=True)


def test_it_runs_as_an_unprivileged_user_and_listens_on_no_network(instance: Instance) -> None:
    instance.start()
    owner = Path(f"/proc/{instance.pid}").stat().st_uid
    assert owner != 0
    with instance.connect() as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
    assert row == ("",)
    assert instance.socket_directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.root
def test_root_writes_nothing_by_name_where_the_servers_user_could_plant_a_link(
    instance: Instance, workspace: Workspace, scratch: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be lured into other users' files")
    assert instance.log_file.parent.stat().st_uid == 0
    assert scratch.stat().st_uid == workspace.datasets().stat().st_uid == 0
    assert scratch.stat().st_mode & 0o777 == 0o711
    assert instance.data_directory.stat().st_uid == workspace.account.uid


def test_sockets_lie_in_the_scratch_directory_unless_the_kernel_refuses_its_length(
    workspace: Workspace, tmp_path: Path
) -> None:
    with workspace.scratch() as scratch, workspace.sockets(scratch) as sockets:
        assert sockets.parent == scratch
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with workspace.sockets(deep) as sockets:
        assert sockets.parent == Path(tempfile.gettempdir())
    assert not sockets.exists()


def test_it_can_be_started_again_after_it_was_stopped(instance: Instance) -> None:
    instance.start()
    instance.stop()
    instance.start()
    assert instance.pid > 0


def test_a_postmaster_that_is_stopped_is_ended_with_its_children(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.postgres.process.instance._STOP_TIMEOUT_S", 0.5)
    instance.start()
    everybody = [instance.pid, *children(instance.pid)]
    os.kill(instance.pid, signal.SIGSTOP)
    instance.stop(is_immediate=True)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everybody))


def test_data_to_be_kept_that_were_not_shut_down_are_told(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.postgres.process.instance._STOP_TIMEOUT_S", 0.5)
    instance.start()
    os.kill(instance.pid, signal.SIGSTOP)
    with pytest.raises(ServerError) as caught:
        instance.stop()
    assert caught.value.message == "the server did not shut down within 0 s and was killed"
    assert "ready to accept connections" in (caught.value.detail or "")


def test_a_socket_that_is_taken_is_named_in_the_servers_words(
    instance: Instance, workspace: Workspace, installation: Installation, scratch: Path
) -> None:
    instance.start()
    initialise(installation, workspace.account, scratch / "other")
    second = Instance(installation, workspace.account, scratch / "other", instance.socket_directory, PORT)
    with pytest.raises(ServerStartError, match="the server did not start") as caught:
        second.start()
    assert "is another postmaster" in (caught.value.detail or "").lower() or "lock file" in (
        caught.value.detail or ""
    )


def test_data_of_another_major_version_is_refused(instance: Instance, installation: Installation) -> None:
    (instance.data_directory / "PG_VERSION").write_text("15\n")
    with pytest.raises(DataDirectoryError) as caught:
        instance.start()
    assert caught.value.message == f'"{instance.data_directory}" belongs to PostgreSQL 15'
    assert installation.version in (caught.value.detail or "")
    assert caught.value.hint == "name the binaries of version 15 with --pg-bin"


def test_a_directory_without_data_is_refused(instance: Instance) -> None:
    (instance.data_directory / "PG_VERSION").unlink()
    with pytest.raises(DataDirectoryError, match="is not a data directory"):
        instance.start()


@pytest.mark.root
def test_data_owned_by_another_user_is_refused_by_the_server(instance: Instance) -> None:
    if os.geteuid() != 0:
        pytest.skip("changing an owner takes root")
    os.chown(instance.data_directory, 12345, 12345)
    with pytest.raises(ServerStartError) as caught:
        instance.start()
    os.chown(instance.data_directory, instance.account.uid, instance.account.gid)
    assert "Permission denied" in (caught.value.detail or "") or "ownership" in (caught.value.detail or "")
