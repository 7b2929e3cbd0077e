"""Scratch servers and what can go wrong with them."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import wait_until

from pgdyno.base.errors import DataDirectoryError, ServerError, ServerStartError, StorageError
from pgdyno.cli.output import Lines
from pgdyno.load.discovery import find_driver, find_generator
from pgdyno.measure.arenas.datasets import DataSets
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.design.isolation import split_cpus
from pgdyno.plan.inspection.inspect import running_embedded
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.network import can_leave_network
from pgdyno.postgres.process.processes import children, is_alive
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

pytestmark = pytest.mark.server

PORT = 5999


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


def test_ctrl_c_right_after_the_start_leaves_no_server(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    start = Instance.start

    def interrupted(self: Instance) -> None:
        start(self)
        started.append(self.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(Instance, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), running_embedded():
        pass
    (pid,) = started
    assert not is_alive(pid)


def test_a_server_without_network_has_only_the_loopback_which_is_down(instance: Instance) -> None:
    if not can_leave_network():
        pytest.skip("the kernel lets this user make no network namespace")
    instance.has_network = False
    instance.start()
    with instance.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    of_server, ours = (Path(f"/proc/{pid}/ns/net").readlink() for pid in (instance.pid, "self"))
    assert of_server != ours
    devices = Path(f"/proc/{instance.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    assert Path(f"/proc/{instance.pid}/net/route").read_text().splitlines()[1:] == []


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


def test_an_installation_says_which_setting_it_rejects(
    instance: Instance, workspace: Workspace, installation: Installation
) -> None:
    bytes_ = installation.shared_memory_bytes(
        workspace.account, instance.data_directory, {"shared_buffers": "1GB"}
    )
    assert bytes_ is not None
    assert 1 << 30 < bytes_ < 1.1 * (1 << 30)


def test_a_missing_installation_is_an_error_with_the_place(tmp_path: Path) -> None:
    done = pgdyno("bench", "pgbench-select", "--pg-bin", str(tmp_path))
    assert done.returncode == 1
    assert f'"{tmp_path}" contains no PostgreSQL' in done.stderr


def test_a_disk_that_is_too_small_is_noticed_before_anything_is_loaded(workspace: Workspace) -> None:
    with pytest.raises(StorageError) as caught:
        workspace.require_free(1 << 60, "the data set pgbench-40")
    assert caught.value.message == f"not enough disk space in {workspace.root} for the data set pgbench-40"
    assert "choose a smaller --scale" in (caught.value.hint or "")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 120 MB, which an empty data directory fits into and a loaded one does not."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    directory = Path(tempfile.mkdtemp(prefix="pgdyno-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=120m,mode=755", "tmpfs", str(directory)]
    if subprocess.run(mount, check=False).returncode != 0:
        directory.rmdir()
        pytest.skip("this environment does not allow mounts")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)
    directory.rmdir()


@pytest.mark.root
def test_a_disk_that_fills_up_during_the_load_is_named_and_nothing_half_loaded_stays(
    small_disk: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(small_disk, current_account())
    monkeypatch.setattr(Workspace, "require_free", lambda *_: None)  # as if the space went meanwhile
    with workspace.scratch() as scratch:
        data_sets = DataSets(
            workspace,
            scratch,
            Loads(
                workspace,
                partial(
                    find_generator,
                    bin_directory=installation.bin_directory,
                    scratch_directory=scratch,
                    run=workspace.account.run,
                ),
                partial(find_driver, scratch),
                scratch,
                split_cpus((0,), is_wanted=False),
            ).fill,
            Lines(),
        )
        with pytest.raises(StorageError, match="the disk filled up"):
            data_sets.ensure(replace(PGBENCH_DATA, scale=20), installation)
        assert [path.name for path in scratch.iterdir() if path.is_dir()] == []
    assert list((small_disk / "datasets").iterdir()) == []


@pytest.mark.root
def test_a_data_set_is_copied_with_the_rights_of_its_account(home: Path) -> None:
    """In its directories it could exchange a file for a link while root copies."""
    workspace = Workspace(home, current_account())
    source = workspace.datasets() / "loaded"
    (source / "base").mkdir(parents=True)
    (source / "base/rows").write_text("rows")
    workspace.account.own(source, source / "base", source / "base/rows")
    with workspace.scratch() as scratch:
        data_sets = DataSets(workspace, scratch, lambda *_: None, Lines())
        data_sets.copy([(source, scratch / "a"), (source, scratch / "b")])
        assert (scratch / "b/base/rows").read_text() == "rows"
        assert (scratch / "b/base/rows").stat().st_uid == workspace.account.uid
        (source / "base/of_root").write_text("closed to the account")
        (source / "base/of_root").chmod(0o600)
        with pytest.raises(StorageError) as caught:
            data_sets.copy([(source, scratch / "c")])
        assert caught.value.message == "could not copy the data set loaded"
        assert str(caught.value.detail).endswith("base/of_root' for reading: Permission denied")
        assert not (scratch / "c").exists()
