"""Effective process limits: the minimum of the host and all enclosing control groups.

The source of a limit is the file that sets it. An unreadable limit makes the result unknown, since the
readable ones would only be an upper bound. "No limit" is written as ``max`` (v2), -1 (v1), a missing file
(the root group has none) or a huge number (9223372036854771712 in v1). The huge number is treated as a limit,
larger than any host's resources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.kernel_files import cpu_list, key_values, number, size_bytes
from pgdyno.host.files.tree import EMPTY, NO_SUCH_FILE, Tree, parsed, together
from pgdyno.host.host import Limits
from pgdyno.host.machine.cgroups import Membership, cgroup_version, read_hierarchy, read_membership
from pgdyno.host.machine.memory import meminfo
from pgdyno.host.machine.mounts import MountEntry, read_mountinfo

T = TypeVar("T")
Parsers: TypeAlias = Mapping[str, Callable[[str], T | Unknown]]  # file name → parser

NO_LIMIT = Unknown("no limit")
_MEMORY_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""By cgroup version: the limit, the usage, and the key in memory.stat of the cache reclaimed first."""


def memory_limits(tree: Tree, membership: Fact[Membership]) -> list[Fact[int]]:
    """Return the hard memory limits in bytes.

    v1's memory.stat also includes the limits of groups above the mounted part of the hierarchy.
    """
    v1: Parsers[int] = {"memory.limit_in_bytes": limit, "memory.stat": hierarchical_limit}
    return _limits(tree, membership, "memory", {1: v1, 2: {"memory.max": limit}})


def memory_high_limits(tree: Tree, membership: Fact[Membership]) -> list[Fact[int]]:
    """Return the limits in bytes above which the kernel throttles processes; only v2 has them."""
    return _limits(tree, membership, "memory", {1: {}, 2: {"memory.high": limit}})


def memory_left(tree: Tree, membership: Fact[Membership]) -> list[Fact[int]]:
    """Return the bytes that each limited group may still use, including reclaimable file cache."""
    hierarchy = read_hierarchy(tree, membership, "memory")
    if isinstance(hierarchy.value, Unknown):
        return [Fact(hierarchy.value, hierarchy.source)]
    maximum, current, cache = _MEMORY_FILES[hierarchy.value.version]
    return [_left(tree, directory, maximum, current, cache) for directory in hierarchy.value.directories]


def _left(tree: Tree, directory: str, maximum: str, current: str, cache: str) -> Fact[int]:
    most = tree.read(f"{directory}/{maximum}", limit)
    used = tree.read(f"{directory}/{current}", number)
    if isinstance(most.value, Unknown) or isinstance(used.value, Unknown):
        return most if isinstance(most.value, Unknown) else used
    stat = tree.read(
        f"{directory}/memory.stat", lambda text: dict(line.split() for line in text.splitlines())
    )
    reclaimable = int(stat.or_else({}).get(cache, "0"))
    return Fact(max(0, most.value - used.value + reclaimable), f"{most.source}, {used.source}")


def pids_limits(tree: Tree, membership: Fact[Membership]) -> list[Fact[int]]:
    """Return the limits on the number of processes and threads."""
    return _limits(tree, membership, "pids", {1: {"pids.max": limit}, 2: {"pids.max": limit}})


def hugetlb_limits(tree: Tree, membership: Fact[Membership], page_bytes: int) -> list[Fact[int]]:
    """Return the limits in bytes on the use and the reservation of huge pages of one size."""
    pages = f"hugetlb.{_page_size_name(page_bytes)}"
    v1: Parsers[int] = {f"{pages}.limit_in_bytes": limit, f"{pages}.rsvd.limit_in_bytes": limit}
    return _limits(
        tree, membership, "hugetlb", {1: v1, 2: {f"{pages}.max": limit, f"{pages}.rsvd.max": limit}}
    )


def cpusets(tree: Tree, membership: Fact[Membership]) -> list[Fact[tuple[int, ...]]]:
    """Return the CPUs that each group may use."""
    v1: Parsers[tuple[int, ...]] = {"cpuset.effective_cpus": cpu_list, "cpuset.cpus": cpu_list}
    return _limits(tree, membership, "cpuset", {1: v1, 2: {"cpuset.cpus.effective": cpu_list}})


def cpu_limits(tree: Tree, membership: Fact[Membership]) -> list[Fact[float]]:
    """Return the CPU bandwidth that each group may use, in CPUs."""
    hierarchy = read_hierarchy(tree, membership, "cpu")
    if isinstance(hierarchy.value, Unknown):
        return [Fact(hierarchy.value, hierarchy.source)]
    if hierarchy.value.version == 1:
        return [_quota_and_period(tree, directory) for directory in hierarchy.value.directories]
    return [tree.read(f"{directory}/cpu.max", cpu_max) for directory in hierarchy.value.directories]


def limit(text: str) -> int | Unknown:
    """Parse a limit: a number, ``max`` or -1."""
    return NO_LIMIT if text in ("max", "-1") else number(text)


def cpu_max(text: str) -> float | Unknown:
    """Parse v2's ``quota period`` in microseconds: ``150000 100000`` → 1.5, ``max 100000`` → no limit."""
    quota, _, period = text.partition(" ")
    return _cpus(limit(quota), number(period))


def hierarchical_limit(text: str) -> int | Unknown:
    """Return the smallest limit of a group and its ancestors from v1's memory.stat."""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == "hierarchical_memory_limit":
            return number(value)
    return NO_SUCH_FILE


def _quota_and_period(tree: Tree, directory: str) -> Fact[float]:
    quota = tree.read(f"{directory}/cpu.cfs_quota_us", limit)
    period = tree.read(f"{directory}/cpu.cfs_period_us", number)
    if isinstance(quota.value, Unknown):
        return Fact(quota.value, quota.source)
    if isinstance(period.value, Unknown):
        return unknown(f"{period.value.reason}: {period.source}", quota.source)
    return Fact(_cpus(quota.value, period.value), quota.source)


def _cpus(quota_us: int | Unknown, period_us: int | Unknown) -> float | Unknown:
    if isinstance(quota_us, Unknown):
        return quota_us
    if isinstance(period_us, Unknown):
        return period_us
    return quota_us / period_us if period_us > 0 else Unknown(f"not a period: {period_us} us")


def _limits(
    tree: Tree, membership: Fact[Membership], controller: str, files: Mapping[int, Parsers[T]]
) -> list[Fact[T]]:
    """Read ``files``, given by cgroup version, of every group."""
    hierarchy = read_hierarchy(tree, membership, controller)
    if isinstance(hierarchy.value, Unknown):
        return [Fact(hierarchy.value, hierarchy.source)]
    return [
        tree.read(f"{directory}/{name}", parse)
        for directory in hierarchy.value.directories
        for name, parse in files[hierarchy.value.version].items()
    ]


def _page_size_name(page_bytes: int) -> str:
    """Return a huge page size as in the kernel's file names (mem_fmt): 2MB, 1GB, 64KB."""
    for shift, unit in ((30, "GB"), (20, "MB")):
        if page_bytes >= 1 << shift:
            return f"{page_bytes >> shift}{unit}"
    return f"{page_bytes >> 10}KB"


N = TypeVar("N", int, float)

_NOT_LIMITING = (NO_LIMIT, NO_SUCH_FILE, EMPTY)
_SHM = "/dev/shm"  # noqa: S108 — not written to, only its size is read
_RLIMIT = re.compile(r"^(Max .+?)\s{2,}(\S+)\s+\S+")
_SECCOMP = {"0": "disabled", "1": "strict", "2": "filter"}  # PR_GET_SECCOMP(2const)


@dataclass(frozen=True)
class Capacity:
    """Capacity of the host itself, before any limit."""

    memory_bytes: Fact[int]
    online_cpus: Fact[tuple[int, ...]]
    huge_page_sizes: Fact[tuple[int, ...]]  # in bytes


def inspect_limits(tree: Tree, process: str, capacity: Capacity) -> Limits:
    """Return the effective limits of ``process`` (``self`` or a process id)."""
    member = read_membership(tree, process)
    status = tree.read(f"/proc/{process}/status", key_values)
    memory = smallest(capacity.memory_bytes, memory_limits(tree, member))
    allowed = parsed(status, lambda pairs: cpu_list(pairs.get("Cpus_allowed_list", "")))
    cpuset = narrowest(capacity.online_cpus, [*cpusets(tree, member), allowed])
    return Limits(
        cgroup_version=parsed(read_mountinfo(tree, "self"), cgroup_version),
        memory_bytes=memory,
        memory_high_bytes=smallest(memory, memory_high_limits(tree, member)),
        cpu_count=smallest(parsed(cpuset, lambda cpus: float(len(cpus))), cpu_limits(tree, member)),
        cpuset=cpuset,
        pids_max=smallest(_kernel_pids(tree), pids_limits(tree, member)),
        hugetlb_bytes=_hugetlb(capacity, tree, member),
        shm_bytes=_shm(read_mountinfo(tree, process), capacity.memory_bytes),
        rlimits=tree.read(f"/proc/{process}/limits", parse_rlimits),
        seccomp=parsed(status, parse_seccomp),
    )


def available_memory(tree: Tree, process: str) -> Fact[int]:
    """Return the bytes available to new processes in the control group of ``process``.

    This is the minimum over the host and every control group.
    """
    member = read_membership(tree, process)
    return smallest(meminfo(tree, "MemAvailable"), memory_left(tree, member))


def smallest(host: Fact[N], limits: Iterable[Fact[N]]) -> Fact[N]:
    """Return the smallest of the host's value and all limits; of equal ones, the first."""
    found = host
    for fact in limits:
        if fact.value in _NOT_LIMITING:
            continue
        if isinstance(fact.value, Unknown) or isinstance(found.value, Unknown):
            return found if isinstance(found.value, Unknown) else fact
        if fact.value < found.value:
            found = fact
    return found


def narrowest(
    online: Fact[tuple[int, ...]], allowed: Iterable[Fact[tuple[int, ...]]]
) -> Fact[tuple[int, ...]]:
    """Return the CPUs in all sets; the source is the last set that removed a CPU."""
    found = online
    for fact in allowed:
        if fact.value in _NOT_LIMITING:
            continue
        if isinstance(fact.value, Unknown) or isinstance(found.value, Unknown):
            return found if isinstance(found.value, Unknown) else fact
        if not set(found.value) <= set(fact.value):
            found = Fact(tuple(sorted({*found.value} & {*fact.value})), fact.source)
    return found


def parse_rlimits(text: str) -> dict[str, str] | Unknown:
    """Parse /proc/PID/limits into the kernel's names and soft limits: numbers or ``unlimited``."""
    found = {match[1]: match[2] for line in text.splitlines() if (match := _RLIMIT.match(line))}
    return found or Unknown("no limits listed")


def parse_seccomp(status: dict[str, str]) -> str | Unknown:
    """Return the seccomp mode from /proc/PID/status; a filter may forbid io_uring on a kernel that has it."""
    mode = status.get("Seccomp")
    return _SECCOMP.get(mode, mode) if mode is not None else Unknown("no seccomp in this kernel")


def _kernel_pids(tree: Tree) -> Fact[int]:
    """Return the kernel's own limit on processes and threads."""
    threads = tree.read("/proc/sys/kernel/threads-max", number)
    return smallest(tree.read("/proc/sys/kernel/pid_max", number), [threads])


def _hugetlb(capacity: Capacity, tree: Tree, member: Fact[Membership]) -> Fact[dict[int, int]]:
    """Return the bytes allowed in huge pages of each size; the host's memory if not limited."""
    sizes = capacity.huge_page_sizes
    if isinstance(sizes.value, Unknown):
        return Fact(sizes.value, sizes.source)
    found = {
        size: smallest(capacity.memory_bytes, hugetlb_limits(tree, member, size)) for size in sizes.value
    }
    source = ", ".join(dict.fromkeys(fact.source for fact in found.values()))
    return together(found, source or sizes.source)


def _shm(mounts: Fact[tuple[MountEntry, ...]], memory_bytes: Fact[int]) -> Fact[int]:
    """Return the size of /dev/shm, which holds dynamic shared memory: 64 MB in a default container."""
    if isinstance(mounts.value, Unknown):
        return Fact(mounts.value, mounts.source)
    on_it = [mount for mount in mounts.value if mount.mount_point == _SHM]
    if not on_it:
        return unknown(f"{_SHM} is not a mount", mounts.source)
    sizes = [option.removeprefix("size=") for option in on_it[-1].options if option.startswith("size=")]
    if sizes:
        return Fact(size_bytes(sizes[0]), mounts.source)
    # The kernel omits the size if it is the default: Documentation/filesystems/tmpfs.rst.
    half = parsed(memory_bytes, lambda total: total // 2)
    return Fact(half.value, f"{mounts.source} (tmpfs default: half of {half.source})")
