"""Scratch servers and what can go wrong with them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

from pgdyno.base.errors import StorageError
from pgdyno.cli.output import Lines
from pgdyno.load.discovery import find_driver, find_generator
from pgdyno.measure.arenas.datasets import DataSets
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.design.isolation import split_cpus
from pgdyno.plan.inspection.inspect import running_embedded
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.processes import is_alive
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
