"""Facts about a host; each has a source and a value, or the reason why the value is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.cache_allocation import CacheAllocation

_NOT_INSPECTED: Fact[Any] = Fact(Unknown("not inspected"), "inspect_host")


@dataclass(frozen=True)
class SystemUse:
    """Activity of the whole host in ``wall_s``: server, client and everything else."""

    wall_s: float
    cpus: int
    busy_share: float  # of all CPUs
    context_switches: float


@dataclass(frozen=True)
class DeviceUse:
    """Activity of one block device in ``wall_s``."""

    wall_s: float
    reads: float
    read_bytes: float
    writes: float
    written_bytes: float


@dataclass(frozen=True)
class HostCpu:
    """Times of a set of CPUs in seconds since boot, read at ``at_s`` on the monotonic clock."""

    at_s: float
    busy_s: float
    steal_s: float


@dataclass(frozen=True)
class Cache:
    """One level of one kind: "Data", "Instruction" or "Unified"."""

    level: int
    kind: str
    size_bytes: int
    ways: int
    line_bytes: int


@dataclass(frozen=True)
class Cpu:
    """Processor: identity, instruction set, topology."""

    model: Fact[str]
    architecture: Fact[str]
    isa_features: Fact[tuple[str, ...]]  # the kernel's names: avx512f, lse → "atomics", spe, …
    logical_count: Fact[int]
    core_count: Fact[int]
    socket_count: Fact[int]
    numa_nodes: Fact[int]
    is_smt_active: Fact[bool]
    l1d_bytes: Fact[int]
    l2_bytes: Fact[int]
    l3_bytes: Fact[int]
    has_pmu: Fact[bool]
    virtualisation: Fact[str]  # of the postmaster when known: "none", "kvm", "container:docker on kvm", …
    clocksource: Fact[str]
    governor: Fact[str] = _NOT_INSPECTED  # frequency scaling policy
    frequency_mhz: Fact[float] = _NOT_INSPECTED  # the maximum; without frequency scaling, the nominal one
    mitigations: Fact[dict[str, str]] = _NOT_INSPECTED  # vulnerability → status reported by the kernel


@dataclass(frozen=True)
class Memory:
    """Physical memory and page sizes."""

    total_bytes: Fact[int]
    available_bytes: Fact[int]
    page_bytes: Fact[int]
    huge_pages: Fact[dict[int, HugePagePool]]  # key: page size in bytes
    transparent_huge_pages: Fact[str]  # the bracketed choice: always, madvise, never
    huge_page_bytes: Fact[int] = _NOT_INSPECTED  # the default size, used unless huge_page_size is set


@dataclass(frozen=True)
class HugePagePool:
    """Page counts of one pool of explicit huge pages."""

    total: int
    free: int
    reserved: int
    surplus: int


@dataclass(frozen=True)
class Limits:
    """Effective limits of this process or the postmaster: the minimum over host and cgroups."""

    cgroup_version: Fact[str]  # "v1", "v2", "hybrid", "none"
    memory_bytes: Fact[int]  # hard limit; the host's memory if no group limits it
    memory_high_bytes: Fact[int]  # cgroup v2 throttling limit; the hard limit if unset
    cpu_count: Fact[float]  # min(cpuset, quota/period, online CPUs)
    cpuset: Fact[tuple[int, ...]]
    pids_max: Fact[int]
    hugetlb_bytes: Fact[dict[int, int]]  # by page size; the host's memory if no group limits it
    shm_bytes: Fact[int]  # size of /dev/shm
    rlimits: Fact[dict[str, str]]  # soft limits by the kernel's names, of the postmaster if known
    seccomp: Fact[str] = _NOT_INSPECTED  # "disabled", "strict", "filter"


@dataclass(frozen=True)
class BlockDevice:
    """One whole disk."""

    name: str
    is_rotational: Fact[bool]
    scheduler: Fact[str]
    read_ahead_bytes: Fact[int]
    size_bytes: Fact[int]


@dataclass(frozen=True)
class Mount:
    """The mounted file system of the data directory or the WAL; if they are unknown, of the root."""

    target: str
    device: str
    filesystem: str
    options: tuple[str, ...]
    available_bytes: Fact[int] = _NOT_INSPECTED  # for unprivileged users
    disk: Fact[str] = _NOT_INSPECTED  # name of the underlying BlockDevice; dm-0 for a logical volume


@dataclass(frozen=True)
class Nic:
    """One network interface with its queues."""

    name: str
    rx_queues: Fact[int]
    tx_queues: Fact[int]
    rps_cpus: Fact[tuple[str, ...]]  # one mask per receive queue
    irq_affinity: Fact[dict[str, str]]  # IRQ number → CPU list


@dataclass(frozen=True)
class Kernel:
    """Kernel and distribution."""

    release: Fact[str]
    distribution: Fact[str]
    sysctls: dict[str, Fact[str]]  # key → value, e.g. vm.dirty_bytes
    profile_options: Fact[tuple[str, ...]] = _NOT_INSPECTED  # build options for profile-guided optimization


@dataclass(frozen=True)
class Owner:
    """A program that sets values of the running kernel on its own.

    ``does`` is its observed state: "is active with profile balanced". ``files`` are path patterns with ``*``.
    ``instead`` is advice for the user.
    """

    name: str
    does: str
    files: tuple[str, ...]
    instead: str

    def sets(self, path: str) -> bool:
        """Whether it sets this file, or the files of this pattern."""
        return any(fnmatchcase(path, pattern) for pattern in self.files)

    @property
    def warning(self) -> str:
        """Reason not to write the same files."""
        return f"{self.name} {self.does}, and would restore its own values"


@dataclass(frozen=True)
class Host:
    """Everything known about one machine."""

    hostname: Fact[str]
    cpu: Cpu
    memory: Memory
    limits: Limits
    kernel: Kernel
    block_devices: Fact[tuple[BlockDevice, ...]]
    mounts: Fact[tuple[Mount, ...]]
    nics: Fact[tuple[Nic, ...]]
    owners: Fact[tuple[Owner, ...]] = _NOT_INSPECTED  # other programs that set values of the kernel
    cache_allocation: Fact[CacheAllocation] = _NOT_INSPECTED  # how the processor's caches are divided
    kernel_files: Mapping[str, Fact[str]] = field(default_factory=dict)
    """First lines of the requested files in /proc and /sys, by path."""
