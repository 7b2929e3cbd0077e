"""Kernel files that no variant may set under any circumstances.

None of them makes a server faster.

A study is something that people pass on. What stands here would turn one into a program that runs as root.
Everything that is neither here nor a lever's takes ``--allow-file``.

Source: Linux, Documentation/admin-guide/sysctl/, Documentation/ABI/, Documentation/networking/ip-sysctl.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from pgdyno.host.kernel_file import SYSCTL_ROOT

_SYSCTLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "the kernel runs the program that it names, as root": (
            "kernel/core_pattern", "kernel/core_pipe_limit", "kernel/modprobe", "kernel/hotplug",
            "kernel/poweroff_cmd", "kernel/usermodehelper/*", "kernel/firmware_config/*", "fs/binfmt_misc/*",
        ),
        "it can stop or restart the machine": (
            "kernel/sysrq", "*panic*", "kernel/ctrl-alt-del", "kernel/kexec*",
        ),
        "it keeps users of the machine apart": (
            "fs/protected_*", "fs/suid_dumpable", "kernel/yama/*", "kernel/kptr_restrict",
            "kernel/dmesg_restrict", "kernel/perf_event_paranoid", "kernel/randomize_va_space",
            "kernel/unprivileged_*", "vm/unprivileged_*", "vm/mmap_min_addr", "vm/mmap_rnd_*",
            "vm/legacy_va_layout", "vm/memfd_noexec", "kernel/modules_disabled", "kernel/seccomp/*",
            "kernel/keys/*", "user/*", "dev/tty/*", "net/core/bpf_jit_*",
        ),
        "it decides which traffic the machine's network lets through": (
            "net/ipv4/conf/*", "net/ipv6/conf/*", "net/ipv4/ip_forward*",
            "net/ipv4/ip_unprivileged_port_start", "net/ipv4/ip_nonlocal_bind",
            "net/ipv6/ip_nonlocal_bind", "net/ipv4/ping_group_range",
            "net/netfilter/*", "net/bridge/*",
        ),
    }
)  # fmt: skip
_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "the kernel runs the program that it names, as root": (
            "/sys/kernel/uevent_helper", "*/release_agent",
        ),
        "it can stop or restart the machine": ("/sys/power/*", "/sys/kernel/kexec*", "/sys/kernel/reboot/*"),
        "it keeps users of the machine apart": (
            "/sys/kernel/security/*", "/sys/fs/selinux/*", "/sys/fs/bpf/*",
        ),
        "it gives or takes away a device, or memory": (
            "*/bind", "*/unbind", "*/new_id", "*/remove_id", "*/remove", "*/rescan", "*/scan", "*/delete",
            "*/reset", "*/driver_override", "*/drivers_probe", "*/authorized*",
            "*/sriov_numvfs", "*/*_offline_page",
        ),
        "it concerns the firmware": ("/sys/firmware/*", "*/firmware/*", "*/microcode/*"),
        "it is for the developers of a kernel or of a driver, and promises nothing": (
            "/sys/kernel/debug/*", "/sys/kernel/tracing/*", "/sys/kernel/livepatch/*", "/sys/kernel/config/*",
            "/sys/module/*", "*/parameters/*",
        ),
    }
)  # fmt: skip
"""Reasons and patterns, in which ``*`` stands for any text: /sys has links that give a device many paths."""

_REFUSED = {
    **{f"{SYSCTL_ROOT}{pattern}": why for why, patterns in _SYSCTLS.items() for pattern in patterns},
    **{pattern: why for why, patterns in _FILES.items() for pattern in patterns},
}


_LEVERS_OWN = ("/sys/kernel/debug/sched/*", "/sys/module/haltpoll/parameters/*")
"""Files of developers that levers set nevertheless."""


def why_refused_file(path: str) -> str | None:
    """Return why no variant may set a file, or None. Levers' own files are checked before."""
    return next((why for pattern, why in _REFUSED.items() if fnmatchcase(path, pattern)), None)


def why_never_written(path: str) -> str | None:
    """Return why pgdyno writes a file for nobody, or None. Those of levers it does write."""
    return None if any(fnmatchcase(path, one) for one in _LEVERS_OWN) else why_refused_file(path)
