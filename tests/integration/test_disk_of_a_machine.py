"""The queue of a real block device that is in use, changed as planned and put back."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fix_machine import Machine, chosen
from tests.fix_settings import host_of, server_of

from pgdyno.apply.host_state import HostState
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, Skipped, State

pytestmark = pytest.mark.root

LEVERS = levers.load()
DISK_BYTES = 64 << 20
WRITES_COMPLETED = 4  # a field of /sys/block/*/stat, counted from 0


@dataclass(frozen=True)
class Disk:
    """A loop device with a file system that is mounted in ``directory``."""

    name: str
    directory: Path

    def path(self, name: str) -> str:
        return f"/sys/block/{self.name}/queue/{name}"

    def show(self, name: str) -> str:
        return chosen(Path(self.path(name)).read_text())

    def write(self) -> int:
        """Write a file to the disk, and return how many writes that were."""
        before = self._writes()
        with (self.directory / "written").open("wb") as file:
            file.write(bytes(1 << 20))
            os.fsync(file)
        return self._writes() - before

    def _writes(self) -> int:
        return int(Path(f"/sys/block/{self.name}/stat").read_text().split()[WRITES_COMPLETED])

    def context(self) -> PlanContext:
        """Return what levers see of a server with more data than memory on this disk."""
        files = read_kernel_files(Tree(), levers.kernel_files())
        host = replace(host_of(device=self.name), kernel_files=files)
        server = server_of(18, data_bytes=1 << 50)
        return PlanContext(
            settings=EffectiveSettings(server),
            resources=resources_of(host, server, Figures()),
            host=proven_host(host, server),
        )


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=250)


@pytest.fixture
def disk(machine: Machine) -> Iterator[Disk]:
    """Return a disk as providers deliver them: with a scheduler, and much read ahead."""
    if machine.queue is None or shutil.which("mkfs.ext4") is None:
        pytest.skip("no loop device that is unused, or no mkfs.ext4 (e2fsprogs)")
    sizes = sorted(Path("/sys/block").glob("loop*/size"))
    name = next(size.parent.name for size in reversed(sizes) if int(size.read_text()) == 0)
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="pgdyno-disk-"))
        stack.callback(shutil.rmtree, place)
        image, disk = place / "image", Disk(name, place / "mount")
        with image.open("wb") as file:
            file.truncate(DISK_BYTES)
        disk.directory.mkdir()
        run("losetup", f"/dev/{name}", str(image))
        stack.callback(run, "losetup", "--detach", f"/dev/{name}")
        run("mkfs.ext4", "-q", f"/dev/{name}")
        run("mount", f"/dev/{name}", str(disk.directory))
        stack.callback(run, "umount", str(disk.directory))
        for file_name, value in (("scheduler", "mq-deadline"), ("read_ahead_kb", "8192")):
            stack.callback(machine.set, disk.path(file_name), disk.show(file_name))
            machine.set(disk.path(file_name), value)
        yield disk


def test_a_disk_in_use_gets_the_scheduler_and_the_read_ahead_that_are_planned(
    disk: Disk, tmp_path: Path
) -> None:
    planned: dict[str, str] = {}
    for lever in ("io_scheduler", "read_ahead"):
        outcome = plan_one(LEVERS[lever], disk.context())
        assert not isinstance(outcome, Skipped), outcome.reason
        planned |= {line.change.key: line.change.value for line in outcome}
    assert planned == {disk.path("scheduler"): "none", disk.path("read_ahead_kb"): "128"}
    depth = disk.show("nr_requests")
    with HostState(tmp_path, host_writers()).holding(planned):
        assert (disk.show("scheduler"), disk.show("read_ahead_kb")) == ("none", "128")
        assert [LEVERS[lever].detect(disk.context()).state for lever in ("io_scheduler", "read_ahead")] == [
            State.ON,
            State.ON,
        ]
        assert disk.write() > 0
    assert (disk.show("scheduler"), disk.show("read_ahead_kb")) == ("mq-deadline", "8192")
    assert disk.show("nr_requests") == depth
    assert disk.write() > 0


def test_a_disk_in_use_gets_the_depth_that_a_variant_asks_for(disk: Disk, tmp_path: Path) -> None:
    depth = disk.show("nr_requests")
    assert depth != "32"
    with HostState(tmp_path, host_writers()).holding({disk.path("nr_requests"): "32"}):
        assert disk.write() > 0
        reported = LEVERS["io_queue_depth"].detect(disk.context()).detail
        assert reported.startswith(f"{disk.name} can queue 32 requests: ")
    assert disk.show("nr_requests") == depth
