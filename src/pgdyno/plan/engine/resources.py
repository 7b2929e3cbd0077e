"""Resources for the application layer's rules, each a fact: read from the host, or stated by the user.

A host's figures apply to a server only if it is proven to run there; otherwise they are unknown unless
the user states them. A stated figure overrides one read, but must not exceed a proven limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.host import BlockDevice, Host, Mount
from pgdyno.postgres.guc import format_bytes
from pgdyno.postgres.server import Server

T = TypeVar("T")


class StorageKind(StrEnum):
    """The storage classes that planning distinguishes."""

    HDD = "hdd"
    SSD = "ssd"
    NVME = "nvme"

    @property
    def is_rotational(self) -> bool:
        """Whether a random read costs a seek."""
        return self is StorageKind.HDD


@dataclass(frozen=True)
class Figures:
    """Facts stated by the user, which replace or complete those read. None: not stated."""

    memory_bytes: int | None = None
    cpu_count: float | None = None
    storage: StorageKind | None = None
    data_bytes: int | None = None
    free_disk_bytes: int | None = None
    connections: int | None = None


@dataclass(frozen=True)
class HugePages:
    """Explicit huge pages available to a restarted server: the free ones and those it holds now."""

    page_bytes: int
    usable: int


@dataclass(frozen=True)
class Resources:
    """The resources available to the server. Units: bytes, logical CPUs."""

    memory_bytes: Fact[int]
    cpu_count: Fact[float]
    storage: Fact[StorageKind]
    data_bytes: Fact[int]
    free_disk_bytes: Fact[int]
    huge_pages: Fact[HugePages]
    page_bytes: Fact[int]
    disks: Fact[tuple[BlockDevice, ...]]  # the data directory's, then the WAL's if different


def proven_host(host: Host | None, server: Server) -> Host | None:
    """Return the host if the server is proven to run on it; else None."""
    return host if host is not None and server.is_colocated.or_else(default=False) else None


def resources_of(host: Host | None, server: Server, figures: Figures) -> Resources:
    """Combine the facts read with those stated.

    Raises: UsageError if a stated figure exceeds what the proven host has.
    """
    here = proven_host(host, server)
    read = _read(here, server) if here is not None else _hidden(host, server)
    _check_within_limit(figures.memory_bytes, read.memory_bytes)
    return Resources(
        memory_bytes=_stated(figures.memory_bytes, "--ram", read.memory_bytes),
        cpu_count=_stated(figures.cpu_count, "--cpus", read.cpu_count),
        storage=_stated(figures.storage, "--storage", read.storage),
        data_bytes=_stated(figures.data_bytes, "--data-size", read.data_bytes),
        free_disk_bytes=_stated(figures.free_disk_bytes, "--free-disk", read.free_disk_bytes),
        huge_pages=read.huge_pages,
        page_bytes=read.page_bytes,
        disks=read.disks,
    )


def with_pool_changed(resources: Resources, pages: int) -> Resources:
    """Return the resources after adding ``pages`` huge pages of the size that the server requests."""
    pool = resources.huge_pages.or_none()
    if pool is None or pages == 0:
        return resources
    changed = replace(pool, usable=pool.usable + pages)
    return replace(resources, huge_pages=Fact(changed, resources.huge_pages.source))


def _stated(figure: T | None, option: str, otherwise: Fact[T]) -> Fact[T]:
    return otherwise if figure is None else Fact(figure, option)


def _check_within_limit(figure: int | None, limit: Fact[int]) -> None:
    known = limit.or_none()
    if figure is not None and known is not None and figure > known:
        raise UsageError(
            f"--ram {format_bytes(figure)} is more than the {format_bytes(known)} this server can use",
            detail=f"the limit was read from {limit.source}",
        )


def _hidden(host: Host | None, server: Server) -> Resources:
    """Return unknowns: facts about a host do not apply to a server elsewhere."""
    why = "no host was inspected" if host is None else "the server is not proven to run on this host"

    def hidden(option: str) -> str:
        return f"{why}; state it with {option}"

    return Resources(
        memory_bytes=unknown(hidden("--ram"), "host"),
        cpu_count=unknown(hidden("--cpus"), "host"),
        storage=unknown(hidden("--storage"), "host"),
        data_bytes=server.databases_bytes,
        free_disk_bytes=unknown(hidden("--free-disk"), "host"),
        huge_pages=unknown(why, "host"),
        page_bytes=unknown(why, "host"),
        disks=unknown(why, "host"),
    )


def _read(host: Host, server: Server) -> Resources:
    return Resources(
        memory_bytes=_memory_limit(host),
        cpu_count=host.limits.cpu_count,
        storage=_storage(host, server),
        data_bytes=server.databases_bytes,
        free_disk_bytes=_free_disk(host),
        huge_pages=_huge_pages(host, server),
        page_bytes=host.memory.page_bytes,
        disks=_disks(host, server),
    )


def _memory_limit(host: Host) -> Fact[int]:
    """Return the smallest of the hard limit, the throttling limit and the host's memory."""
    hard = host.limits.memory_bytes
    if not hard.is_known:
        return hard
    candidates = (hard, host.limits.memory_high_bytes, host.memory.total_bytes)
    sizes = [(size, fact.source) for fact in candidates if (size := fact.or_none()) is not None]
    size_bytes, source = min(sizes, key=lambda pair: pair[0])
    return Fact(size_bytes, source)


def _free_disk(host: Host) -> Fact[int]:
    """Return the smaller free space of the data's and the WAL's file systems, because both grow."""
    mounts = host.mounts.or_else(())
    free = [mount.available_bytes for mount in mounts]
    if not free or not all(fact.is_known for fact in free):
        return unknown(
            "the free space of the data directory's file system is not known; state it with --free-disk",
            host.mounts.source,
        )
    return min(free, key=lambda fact: fact.or_else(0))


def _storage(host: Host, server: Server) -> Fact[StorageKind]:
    """Return the kind of storage. Virtual disks report "rotational" regardless of the underlying storage."""
    device = _device_of(host, server.data_directory.or_none())
    if device is None:
        return unknown(
            "the data directory's block device was not found; state it with --storage", "block devices"
        )
    source = device.is_rotational.source
    rotational = device.is_rotational.or_none()
    if rotational is None:
        return unknown(f"whether {device.name} rotates is not known; state it with --storage", source)
    if not rotational:
        return Fact(StorageKind.NVME if device.name.startswith("nvme") else StorageKind.SSD, source)
    if is_virtual(host):
        return unknown(
            f"{device.name} reports itself as rotational, as virtual disks do regardless of the underlying "
            "storage; state it with --storage",
            source,
        )
    return Fact(StorageKind.HDD, source)


def is_virtual(host: Host) -> bool:
    """Whether the machine is virtual. A container on a physical machine is not: it has the real disks."""
    name = host.cpu.virtualisation.or_else("none")
    return name != "none" and (not name.startswith("container:") or " on " in name)


def _disks(host: Host, server: Server) -> Fact[tuple[BlockDevice, ...]]:
    """Return the data directory's disk, then the WAL's if different."""
    first = _device_of(host, server.data_directory.or_none())
    if first is None:
        return unknown("the data directory's block device was not found", "block devices")
    names = [mount.disk.or_none() for mount in host.mounts.or_else(())]
    others = (one for one in host.block_devices.or_else(()) if one.name in names and one != first)
    return Fact((first, *others), host.mounts.source)


def _device_of(host: Host, data_directory: str | None) -> BlockDevice | None:
    """Return the disk below the mount with the longest path that contains the data directory."""
    if data_directory is None:
        return None
    mounts = [mount for mount in host.mounts.or_else(()) if _contains(mount, data_directory)]
    nearest = max(mounts, key=lambda mount: len(mount.target), default=None)
    disk = nearest.disk.or_none() if nearest is not None else None
    return next((device for device in host.block_devices.or_else(()) if device.name == disk), None)


def _contains(mount: Mount, path: str) -> bool:
    return f"{path}/".startswith(mount.target.rstrip("/") + "/")


def _huge_pages(host: Host, server: Server) -> Fact[HugePages]:
    """Return the pool of the size that the server uses: huge_page_size, or else the kernel's default."""
    pools, default = host.memory.huge_pages, host.memory.huge_page_bytes
    wanted_bytes = _setting_bytes(server, "huge_page_size")
    page_bytes = wanted_bytes or default.or_none()
    if isinstance(pools.value, Unknown):
        return unknown("the pools are not readable", pools.source)
    if page_bytes is None:
        return unknown("the default size of huge pages is not known", default.source)
    pool = pools.value.get(page_bytes)
    if pool is None:
        return unknown(f"this kernel has no pool of {format_bytes(page_bytes)} pages", pools.source)
    limits = host.limits.hugetlb_bytes
    if isinstance(limits.value, Unknown):
        return unknown(limits.value.reason, limits.source)
    free = pool.free - pool.reserved + _huge_pages_held(server, page_bytes)
    return Fact(HugePages(page_bytes, min(free, limits.value[page_bytes] // page_bytes)), pools.source)


def _setting_bytes(server: Server, name: str) -> int:
    guc = server.settings.get(name)
    return int(guc.setting) * 1024 if guc is not None and guc.unit == "kB" else 0


def holds_huge_pages(server: Server) -> bool:
    """Whether the running server's shared memory is on huge pages."""
    status = server.settings.get("huge_pages_status")  # since 17
    seen = server.program.has_huge_pages.or_else(default=False)
    return seen if status is None else status.setting == "on"


def _huge_pages_held(server: Server, page_bytes: int) -> int:
    """Return the number of huge pages that the running server holds; a restart releases them."""
    pages = server.settings.get("shared_memory_size_in_huge_pages")  # since 15
    if not holds_huge_pages(server):
        return 0
    return -(-server.shared_memory_bytes.or_else(0) // page_bytes) if pages is None else int(pages.setting)
