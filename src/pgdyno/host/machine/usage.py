"""Host usage since boot: CPU time, context switches and block device activity.

Formats: proc_stat(5), and the kernel's Documentation/admin-guide/iostats.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.machine.cpu_times import ALL_CPUS, parse_cpu_times
from pgdyno.host.machine.mounts import mount_of, read_mountinfo

_SWITCHES = re.compile(r"^ctxt (\d+)", re.MULTILINE)
_SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's sector size
_DISK_FIELDS = 10  # device number, name, and the counters read here; newer kernels have more


@dataclass(frozen=True)
class SystemCounters:
    """Counters of the whole host as in vmstat: busy is user (with nice) and system (with interrupts)."""

    cpus: int
    busy_s: float
    total_s: float
    context_switches: int


@dataclass(frozen=True)
class DeviceCounters:
    """Completed requests of a block device, as iostat counts them."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int


def read_system(tree: Tree) -> Fact[SystemCounters]:
    """Return the counters of the whole host."""
    return tree.read("/proc/stat", parse_system)


def parse_system(text: str) -> SystemCounters | Unknown:
    """Parse /proc/stat."""
    times, switches = parse_cpu_times(text), _SWITCHES.search(text)
    if isinstance(times, Unknown) or switches is None:
        return Unknown("no CPU times and context switches found")
    whole = times[ALL_CPUS]
    return SystemCounters(
        cpus=len(times) - 1,
        busy_s=whole.busy_s,
        total_s=whole.total_s,
        context_switches=int(switches[1]),
    )


def device_of(tree: Tree, pid: int) -> Fact[str]:
    """Return the number (``major:minor``) of the block device with a process's working directory.

    A postmaster's is its data directory. Some file systems (overlay, tmpfs, btrfs, zfs) report no device.
    """
    directory = tree.link(f"/proc/{pid}/cwd")
    if isinstance(directory.value, Unknown):
        return Fact(directory.value, directory.source)
    path = directory.value
    mounts = read_mountinfo(tree, str(pid))
    found = parsed(mounts, lambda entries: mount_of(path, entries) or Unknown(f"no mount holds {path}"))
    return parsed(
        found,
        lambda mount: (
            Unknown(f"{mount.filesystem} has no block device")
            if mount.device_number.startswith("0:")
            else mount.device_number
        ),
    )


def read_device(tree: Tree, device: Fact[str]) -> Fact[DeviceCounters]:
    """Return the counters of a block device."""
    if isinstance(device.value, Unknown):
        return Fact(device.value, device.source)
    number = device.value
    return tree.read("/proc/diskstats", lambda text: parse_device(text, number))


def parse_device(text: str, number: str) -> DeviceCounters | Unknown:
    """Parse the line of a device, given as ``major:minor``, in /proc/diskstats."""
    for fields in map(str.split, text.splitlines()):
        if len(fields) >= _DISK_FIELDS and f"{fields[0]}:{fields[1]}" == number:
            # The fields in between count merged requests and the milliseconds spent reading.
            reads, sectors_read, writes, sectors_written = (int(fields[place]) for place in (3, 5, 7, 9))
            return DeviceCounters(
                reads, sectors_read * _SECTOR_BYTES, writes, sectors_written * _SECTOR_BYTES
            )
    return Unknown(f"no device {number}")
