"""Effective process limits: the minimum of the host and all enclosing cgroups.

The source of a limit is the file that sets it. An unreadable limit makes the result unknown, since the
readable ones would only be an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.kernel_files import cpu_list, key_values, number, size_bytes
from pgdyno.host.files.tree import EMPTY, NO_SUCH_FILE, Tree, parsed, together
from pgdyno.host.host import Limits
from pgdyno.host.machine import cgroup_limits as groups
from pgdyno.host.machine.cgroups import Membership, cgroup_version, read_membership
from pgdyno.host.machine.memory import meminfo
from pgdyno.host.machine.mounts import MountEntry, read_mountinfo

N = TypeVar("N", int, float)

_NOT_LIMITING = (groups.NO_LIMIT, NO_SUCH_FILE, EMPTY)
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
    memory = smallest(capacity.memory_bytes, groups.memory_limits(tree, member))
    allowed = parsed(status, lambda pairs: cpu_list(pairs.get("Cpus_allowed_list", "")))
    cpuset = narrowest(capacity.online_cpus, [*groups.cpusets(tree, member), allowed])
    return Limits(
        cgroup_version=parsed(read_mountinfo(tree, "self"), cgroup_version),
        memory_bytes=memory,
        memory_high_bytes=smallest(memory, groups.memory_high_limits(tree, member)),
        cpu_count=smallest(parsed(cpuset, lambda cpus: float(len(cpus))), groups.cpu_limits(tree, member)),
        cpuset=cpuset,
        pids_max=smallest(_kernel_pids(tree), groups.pids_limits(tree, member)),
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
    return smallest(meminfo(tree, "MemAvailable"), groups.memory_left(tree, member))


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
        size: smallest(capacity.memory_bytes, groups.hugetlb_limits(tree, member, size))
        for size in sizes.value
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
