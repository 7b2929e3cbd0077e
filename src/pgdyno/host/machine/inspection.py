"""Host inspection by reading the host's files; the entry point of this package.

This module reads the kernel, disks with their queues, network interfaces and the division of caches; other
modules read the rest. The resctrl file system shows how the processor's caches are divided. The kernel has
its directory if the processor can divide a cache or monitor its use; the directory is empty until resctrl is
mounted.

Source: Linux, Documentation/filesystems/resctrl.rst; fs/resctrl/rdtgroup.c.
"""

from __future__ import annotations

import gzip
import re
import shlex
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.cache_allocation import (
    MONITORING,
    NO_GROUPS,
    RESCTRL,
    SCHEMATA,
    CacheAllocation,
    ControlledCache,
    division_of,
)
from pgdyno.host.files.kernel_files import chosen, flag, kilobytes, number, read_kernel_files
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree, first_known, parsed, together
from pgdyno.host.host import BlockDevice, Host, Kernel, Nic
from pgdyno.host.machine.cpu import inspect_cpu, online_cpus
from pgdyno.host.machine.limits import Capacity, inspect_limits
from pgdyno.host.machine.memory import inspect_memory
from pgdyno.host.machine.mounts import inspect_mounts
from pgdyno.host.machine.owners import find_owners

_DISKS = "/sys/block"
_NO_DISKS = re.compile(r"^(loop|ram|zram|sr|fd)\d+$")  # images, memory and removable media hold no database
_SECTOR_BYTES = 512  # the unit of /sys/block/*/size, whatever the disk's sector size
_CACHE = re.compile(r"L[23](CODE|DATA)?")
_NETWORK_DEVICES = "/sys/class/net"


def inspect_host(
    root: Path = Path("/"),
    *,
    pid: int | None = None,
    data_directory: Path | None = None,
    kernel_files: Sequence[str] = (),
) -> Host:
    """Return every fact about the host below ``root``.

    ``pid`` is a postmaster: limits, control group, mounts and container are then its own, else pgdyno's.
    ``data_directory`` is used if the postmaster's working directory is not readable, or no postmaster runs.
    ``kernel_files`` are paths or patterns of files in /proc and /sys to return unparsed.
    """
    return inspect_tree(Tree(root), pid=pid, data_directory=data_directory, kernel_files=kernel_files)


def inspect_tree(
    tree: Tree,
    *,
    pid: int | None = None,
    data_directory: Path | None = None,
    kernel_files: Sequence[str] = (),
) -> Host:
    """Return the facts of ``inspect_host`` for the host that ``tree`` reads."""
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
    """Return the postmaster's working directory, with links resolved, else the directory ``stated``."""
    given = None if stated is None else Fact(str(stated), "stated")
    if pid is None:
        return given
    working = tree.link(f"/proc/{pid}/cwd")
    return working if given is None else first_known(working, given)


def inspect_block_devices(tree: Tree) -> Fact[tuple[BlockDevice, ...]]:
    """Return every disk, device-mapper and RAID device, in order of their names."""
    return parsed(
        tree.names(_DISKS),
        lambda names: tuple(_device(tree, name) for name in names if not _NO_DISKS.match(name)),
    )


def _device(tree: Tree, name: str) -> BlockDevice:
    directory = f"{_DISKS}/{name}"
    sectors = tree.read(f"{directory}/size", number)
    return BlockDevice(
        name=name,
        is_rotational=tree.read(f"{directory}/queue/rotational", flag),
        scheduler=tree.read(f"{directory}/queue/scheduler", chosen),
        read_ahead_bytes=tree.read(f"{directory}/queue/read_ahead_kb", kilobytes),
        size_bytes=parsed(sectors, lambda count: count * _SECTOR_BYTES),
    )


def inspect_cache_allocation(tree: Tree) -> Fact[CacheAllocation]:
    """Return the division of the caches; unknown if the kernel or processor cannot divide them."""
    return parsed(tree.names(RESCTRL), lambda names: _allocation(tree, names))


def _allocation(tree: Tree, names: tuple[str, ...]) -> CacheAllocation:
    if "info" not in names:
        return CacheAllocation(is_mounted=False)
    groups = tuple(name for name in names if name not in NO_GROUPS and _is_directory(tree, name))
    places = {"": RESCTRL, **{name: f"{RESCTRL}/{name}" for name in groups}}
    texts = {name: tree.text(place + SCHEMATA).or_none() for name, place in places.items()}
    divided = {name: division_of(text) for name, text in texts.items() if text is not None}
    return CacheAllocation(
        is_mounted=True,
        caches=_caches(tree),
        schemata={name: str(one) for name, one in divided.items() if one is not None},
        occupied=tuple(name for name in places if tree.text(f"{places[name]}/tasks").is_known),
        groups=(*groups, *(one for name in places for one in _monitoring_groups(tree, name))),
    )


def _is_directory(tree: Tree, name: str) -> bool:
    return tree.names(f"{RESCTRL}/{name}").is_known


def _monitoring_groups(tree: Tree, group: str) -> list[str]:
    below = f"{group}/{MONITORING}".lstrip("/")
    return [f"{below}/{name}" for name in tree.names(f"{RESCTRL}/{below}").or_else(())]


def _caches(tree: Tree) -> dict[str, ControlledCache]:
    names = [name for name in tree.names(f"{RESCTRL}/info").or_else(()) if _CACHE.fullmatch(name)]
    found = ((name, _cache(tree, f"{RESCTRL}/info/{name}")) for name in names)
    return {name: cache for name, cache in found if cache is not None}


def _cache(tree: Tree, place: str) -> ControlledCache | None:
    """Return a cache; None if the kernel only monitors it, or a value is missing."""
    texts = [tree.text(f"{place}/{name}").or_none() for name in ("num_closids", "min_cbm_bits")]
    masks = [tree.text(f"{place}/{name}").or_none() for name in ("cbm_mask", "shareable_bits")]
    try:
        groups, least = (int(text or "") for text in texts)
        mask, shared = (int(text or "", 16) for text in masks)
    except ValueError:
        return None
    return ControlledCache(groups, mask, least, shared)


def inspect_nics(tree: Tree) -> Fact[tuple[Nic, ...]]:
    """Return the interfaces that have a device; bridges, loopback and veth pairs have none."""
    names = tree.names(_NETWORK_DEVICES)
    return parsed(
        names,
        lambda known: tuple(
            _nic(tree, name)
            for name in known
            if tree.names(f"{_NETWORK_DEVICES}/{name}/device").value != NO_SUCH_FILE
        ),
    )


def _nic(tree: Tree, name: str) -> Nic:
    directory = f"{_NETWORK_DEVICES}/{name}"
    queues = tree.names(f"{directory}/queues")
    return Nic(
        name=name,
        rx_queues=parsed(queues, lambda names: _count(names, "rx-")),
        tx_queues=parsed(queues, lambda names: _count(names, "tx-")),
        rps_cpus=_rps(tree, queues),
        irq_affinity=_irq_affinity(tree, f"{directory}/device"),
    )


def _count(names: tuple[str, ...], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in names)


def _rps(tree: Tree, queues: Fact[tuple[str, ...]]) -> Fact[tuple[str, ...]]:
    """Return the CPU mask of every receive queue; zero means that receive packet steering is off."""
    receiving = sorted((name for name in queues.or_else(()) if name.startswith("rx-")), key=_queue_number)
    if isinstance(queues.value, Unknown):
        return Fact(queues.value, queues.source)
    masks = {name: tree.text(f"{queues.source}/{name}/rps_cpus") for name in receiving}
    return parsed(together(masks, queues.source), lambda known: tuple(known.values()))


def _queue_number(name: str) -> int:
    digits = name.partition("-")[2]
    return int(digits) if digits.isdecimal() else -1


def _irq_affinity(tree: Tree, device: str) -> Fact[dict[str, str]]:
    """Return the CPUs of each of the device's interrupts.

    A virtio interface is a child of the PCI device with the interrupts, so the parent is read as well.
    """
    interrupts = tree.names(f"{device}/msi_irqs")
    if interrupts.value == NO_SUCH_FILE:
        interrupts = tree.names(f"{device}/../msi_irqs")
    if isinstance(interrupts.value, Unknown):
        return Fact(interrupts.value, interrupts.source)
    numbers = sorted((name for name in interrupts.value if name.isdecimal()), key=int)
    return together(
        {name: tree.text(f"/proc/irq/{name}/smp_affinity_list") for name in numbers}, interrupts.source
    )


SYSCTLS = (
    "vm.swappiness",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.overcommit_kbytes",
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.hugetlb_shm_group",
    "vm.zone_reclaim_mode",
    "vm.min_free_kbytes",
    "vm.max_map_count",
    "kernel.shmmax",
    "kernel.shmall",
    "kernel.sem",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.io_uring_disabled",
    "kernel.io_uring_group",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "fs.file-max",
    "fs.nr_open",
    "fs.aio-max-nr",
    "net.core.somaxconn",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_slow_start_after_idle",
)

_PROFILE_OPTION = re.compile(r"^(CONFIG_(?:AUTOFDO|PROPELLER)_CLANG)=y$", re.MULTILINE)


def inspect_kernel(tree: Tree) -> Kernel:
    """Return the kernel's release, distribution, sysctls and profile options.

    Values that this kernel lacks or hides are unknown.
    """
    release = tree.text("/proc/sys/kernel/osrelease")
    return Kernel(
        release=release,
        distribution=first_known(
            tree.read("/etc/os-release", parse_os_release),
            tree.read("/usr/lib/os-release", parse_os_release),
        ),
        sysctls={key: tree.text(f"/proc/sys/{key.replace('.', '/')}") for key in SYSCTLS},
        profile_options=_profile_options(tree, release.or_else("unknown")),
    )


def hostname(tree: Tree) -> Fact[str]:
    """Return the kernel's hostname."""
    return tree.text("/proc/sys/kernel/hostname")


def parse_os_release(text: str) -> str | Unknown:
    """Return the distribution's name and version; format: os-release(5), shell-like assignments."""
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() == "PRETTY_NAME":
            try:
                return " ".join(shlex.split(value))
            except ValueError:
                return Unknown(f"PRETTY_NAME is not quoted correctly: {value}")
    return Unknown("no PRETTY_NAME")


def _profile_options(tree: Tree, release: str) -> Fact[tuple[str, ...]]:
    """Return the kernel's build options for profile-guided optimization; () if it was built without them.

    Without a configuration file, the compiler may show this: the options require Clang.
    """
    return first_known(
        tree.scan("/proc/config.gz", parse_packed_configuration),
        tree.read(f"/boot/config-{release}", parse_configuration),
        tree.read(f"/lib/modules/{release}/config", parse_configuration),
        tree.read("/proc/version", options_of_compiler),
    )


def parse_packed_configuration(file: BinaryIO) -> tuple[str, ...] | Unknown:
    """Parse the kernel's gzip-compressed configuration."""
    try:
        return parse_configuration(gzip.decompress(file.read()).decode(errors="replace"))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        return Unknown(f"could not decompress: {error}")


def parse_configuration(text: str) -> tuple[str, ...] | Unknown:
    """Return the profile options set in the kernel's configuration: lines of ``CONFIG_NAME=value``."""
    return tuple(_PROFILE_OPTION.findall(text)) if "CONFIG_" in text else Unknown("no options listed")


def options_of_compiler(version: str) -> tuple[str, ...] | Unknown:
    """Return () if /proc/version shows that the kernel was not built by Clang, hence without a profile."""
    if "clang version" in version:
        return Unknown("the kernel was built by Clang, but its configuration is not available")
    return ()
