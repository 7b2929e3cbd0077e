"""Kernel, distribution, and the sysctls that matter to PostgreSQL."""

from __future__ import annotations

import shlex

from pgdyno.host.tree import Tree, first_known
from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.host import Kernel

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


def inspect_kernel(tree: Tree) -> Kernel:
    """Return release, distribution and sysctls; one that this kernel does not have is unknown."""
    return Kernel(
        release=tree.text("/proc/sys/kernel/osrelease"),
        distribution=first_known(
            tree.read("/etc/os-release", parse_os_release),
            tree.read("/usr/lib/os-release", parse_os_release),
        ),
        sysctls={key: tree.text(f"/proc/sys/{key.replace('.', '/')}") for key in SYSCTLS},
    )


def hostname(tree: Tree) -> Fact[str]:
    """Return the name that the host gives itself."""
    return tree.text("/proc/sys/kernel/hostname")


def parse_os_release(text: str) -> str | Unknown:
    """Find the distribution's name and version; format: os-release(5), shell-like assignments."""
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() == "PRETTY_NAME":
            try:
                return " ".join(shlex.split(value))
            except ValueError:
                return Unknown(f"PRETTY_NAME is not quoted well: {value}")
    return Unknown("no PRETTY_NAME")
