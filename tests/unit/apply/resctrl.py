"""A kernel's file system resctrl, on a directory that looks like a machine.

It does what the kernel does when it is mounted, when groups are made and removed, and when a division is
written: the lines that are left out stay as they are. After Linux, Documentation/filesystems/resctrl.rst.
The last-level caches are those of the fixture machine intel-cat-cdp; the L2 caches can be divided as well.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.unit.apply.machines import make_machine, put

from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.writers.cache_group import CacheGroupWriter
from pgdyno.apply.writers.cache_mount import CacheMountWriter
from pgdyno.base.ports import HostWriter
from pgdyno.host.files.kernel_open import KernelTree
from pgdyno.host.files.resctrl import Resctrl

RESCTRL = "/sys/fs/resctrl"
MOUNTS = "/proc/mounts"
ALL = "L2:0=ff;1=ff\nL3DATA:0=fffff;1=fffff\nL3CODE:0=fffff;1=fffff"
WHOLE = "L2:0=ff;1=ff\nL3:0=fffff;1=fffff"
POSTMASTER, BACKEND, SHELL = 4711, 4712, 4713


@dataclass(frozen=True)
class FakeResctrl(Resctrl):
    """Mounts by writing files, and gives the tasks of a removed group back to the others."""

    def mount(self, *, with_cdp: bool) -> None:
        put(self.root, MOUNTS, f"resctrl {RESCTRL} resctrl rw,relatime{',cdp' if with_cdp else ''} 0 0")
        put(self.root, f"{RESCTRL}/info/last_cmd_status", "ok")
        put(self.root, f"{RESCTRL}/info/L2/cbm_mask", "ff")
        for cache in ("L3CODE", "L3DATA") if with_cdp else ("L3",):
            put(self.root, f"{RESCTRL}/info/{cache}/cbm_mask", "fffff")
        (self.root / f"{RESCTRL}/mon_groups".lstrip("/")).mkdir()
        put(self.root, f"{RESCTRL}/schemata", ALL if with_cdp else WHOLE)
        put(self.root, f"{RESCTRL}/tasks", f"{POSTMASTER}\n{BACKEND}\n{SHELL}")

    def unmount(self) -> None:
        put(self.root, MOUNTS, "proc /proc proc rw 0 0")
        shutil.rmtree(self.root / RESCTRL.lstrip("/"))
        (self.root / RESCTRL.lstrip("/")).mkdir()

    def make_group(self, path: str) -> None:
        super().make_group(path)
        is_apart = "cdp" in (self.root / MOUNTS.lstrip("/")).read_text()
        put(self.root, f"{path}/schemata", ALL if is_apart else WHOLE)
        (self.root / f"{path}/tasks".lstrip("/")).touch()
        (self.root / f"{path}/mon_groups".lstrip("/")).mkdir()

    def remove_group(self, path: str) -> None:
        shutil.rmtree(self.root / path.lstrip("/"))


class FakeTree(KernelTree):
    """Keeps the lines of a division that are not written."""

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a file, and merge what is written into a division."""
        before = self._lines(path) if path.endswith("/schemata") and flags & os.O_TRUNC else None
        with super().opened(path, flags) as file:
            yield file
        if before is not None:
            put(
                self.root,
                path,
                "\n".join(f"{name}:{one}" for name, one in (before | self._lines(path)).items()),
            )

    def _lines(self, path: str) -> dict[str, str]:
        text = (self.root / path.lstrip("/")).read_text()
        return {line.partition(":")[0].strip(): line.partition(":")[2] for line in text.splitlines()}


class FakeGroupWriter(CacheGroupWriter):
    """Writes divisions to such a kernel."""

    @property
    def tree(self) -> KernelTree:
        """Tree of files that keeps what is not written."""
        return FakeTree(self.root)


def make_divisible(root: Path) -> Path:
    """Write a machine with resctrl, which is not mounted, and a server in /srv/pg with two processes."""
    make_machine(root, {MOUNTS: "proc /proc proc rw 0 0"})
    (root / RESCTRL.lstrip("/")).mkdir(parents=True)
    data, home = root / "srv/pg", root / "root"
    data.mkdir(parents=True)
    home.mkdir()
    programs = {POSTMASTER: "postgres", BACKEND: "postgres", SHELL: "bash"}
    for pid, program in programs.items():
        process = root / "proc" / str(pid)
        (process / "task" / str(pid)).mkdir(parents=True)
        (process / "exe").symlink_to(f"/usr/lib/postgresql/18/bin/{program}")
        (process / "cwd").symlink_to(data)
    return root


def writers_of(root: Path) -> dict[str, HostWriter]:
    """Return the writers of changes on such a machine."""
    fake = FakeResctrl(root)
    ours = (CacheMountWriter(root, resctrl=fake), FakeGroupWriter(root, resctrl=fake))
    return {**host_writers(root), **{writer.kind: writer for writer in ours}}


def tasks_of(root: Path, group: str) -> list[int]:
    """Return the tasks that a group shows."""
    return [int(task) for task in (root / f"{RESCTRL}/{group}/tasks".lstrip("/")).read_text().split()]
