"""Host inspection by reading the host's files; the entry point of this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno.base.facts import Fact
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree, first_known, parsed
from pgdyno.host.host import Host
from pgdyno.host.machine.block_devices import inspect_block_devices
from pgdyno.host.machine.cache_support import inspect_cache_allocation
from pgdyno.host.machine.cpu import inspect_cpu, online_cpus
from pgdyno.host.machine.kernel import hostname, inspect_kernel
from pgdyno.host.machine.limits import Capacity, inspect_limits
from pgdyno.host.machine.memory import inspect_memory
from pgdyno.host.machine.mounts import inspect_mounts
from pgdyno.host.machine.network import inspect_nics
from pgdyno.host.machine.owners import find_owners


def inspect_host(
    root: Path = Path("/"),
    *,
    pid: int | None = None,
    data_directory: Path | None = None,
    kernel_files: Sequence[str] = (),
) -> Host:
    """Return every fact about the host below ``root``.

    ``pid`` is a postmaster: limits, control group, mounts and container are then its own, else ours.
    ``data_directory`` matters where the postmaster's working directory may not be read, or none runs.
    ``kernel_files`` are paths or patterns of files in /proc and /sys that are wanted as they are.
    """
    return inspect_tree(Tree(root), pid=pid, data_directory=data_directory, kernel_files=kernel_files)


def inspect_tree(
    tree: Tree,
    *,
    pid: int | None = None,
    data_directory: Path | None = None,
    kernel_files: Sequence[str] = (),
) -> Host:
    """Do the same for a host whose files are reached in a way of their own."""
    process = "self" if pid is None else str(pid)
    memory = inspect_memory(tree)
    capacity = Capacity(memory.total_bytes, online_cpus(tree), parsed(memory.huge_pages, tuple))
    return Host(
        hostname=hostname(tree),
        cpu=inspect_cpu(tree, process),
        memory=memory,
        limits=inspect_limits(tree, process, capacity),
        kernel=inspect_kernel(tree),
        block_devices=inspect_block_devices(tree),
        mounts=inspect_mounts(tree, process, _data_directory(tree, pid, data_directory)),
        nics=inspect_nics(tree),
        owners=find_owners(tree),
        cache_allocation=inspect_cache_allocation(tree),
        kernel_files=read_kernel_files(tree, kernel_files),
    )


def _data_directory(tree: Tree, pid: int | None, stated: Path | None) -> Fact[str] | None:
    """Return the postmaster's working directory, in which links are resolved, else the directory stated."""
    told = None if stated is None else Fact(str(stated), "stated")
    if pid is None:
        return told
    working = tree.link(f"/proc/{pid}/cwd")
    return working if told is None else first_known(working, told)
