"""Kernel, distribution, and the sysctls that matter to PostgreSQL."""

from __future__ import annotations

import gzip
import re
import shlex
import zlib
from typing import BinaryIO

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree, first_known
from pgdyno.host.host import Kernel

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
