"""Settings of PostgreSQL, and kernel files, that no variant may have.

Such settings determine where a server is, who may connect to it, or what it runs. On the command line of a
server started by pgdyno, they would override pgdyno's own.

Source: ``postgres --describe-config`` of 15 and 18, the documentation's chapter 20, and Debian's patches;
extensions in contrib. Patterns with suffixes cover other versions and extensions.

Refused kernel files do not make any server faster. Studies are shared between people; with these files, a
study would become a program that runs as root. All files that are neither listed here nor set by a lever
need ``--allow-file``.

Source: Linux, Documentation/admin-guide/sysctl/, Documentation/ABI/,
Documentation/networking/ip-sysctl.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from pgdyno.host.kernel_file import SYSCTL_ROOT

_SYSCTLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "the kernel runs the named program as root": (
            "kernel/core_pattern", "kernel/core_pipe_limit", "kernel/modprobe", "kernel/hotplug",
            "kernel/poweroff_cmd", "kernel/usermodehelper/*", "kernel/firmware_config/*", "fs/binfmt_misc/*",
        ),
        "it can stop or restart the machine": (
            "kernel/sysrq", "*panic*", "kernel/ctrl-alt-del", "kernel/kexec*",
        ),
        "it isolates users of the machine from each other": (
            "fs/protected_*", "fs/suid_dumpable", "kernel/yama/*", "kernel/kptr_restrict",
            "kernel/dmesg_restrict", "kernel/perf_event_paranoid", "kernel/randomize_va_space",
            "kernel/unprivileged_*", "vm/unprivileged_*", "vm/mmap_min_addr", "vm/mmap_rnd_*",
            "vm/legacy_va_layout", "vm/memfd_noexec", "kernel/modules_disabled", "kernel/seccomp/*",
            "kernel/keys/*", "user/*", "dev/tty/*", "net/core/bpf_jit_*",
        ),
        "it controls which network traffic the machine accepts or forwards": (
            "net/ipv4/conf/*", "net/ipv6/conf/*", "net/ipv4/ip_forward*",
            "net/ipv4/ip_unprivileged_port_start", "net/ipv4/ip_nonlocal_bind",
            "net/ipv6/ip_nonlocal_bind", "net/ipv4/ping_group_range",
            "net/netfilter/*", "net/bridge/*",
        ),
    }
)  # fmt: skip
_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "the kernel runs the named program as root": (
            "/sys/kernel/uevent_helper", "*/release_agent",
        ),
        "it can stop or restart the machine": ("/sys/power/*", "/sys/kernel/kexec*", "/sys/kernel/reboot/*"),
        "it isolates users of the machine from each other": (
            "/sys/kernel/security/*", "/sys/fs/selinux/*", "/sys/fs/bpf/*",
        ),
        "it adds, removes or resets a device or memory": (
            "*/bind", "*/unbind", "*/new_id", "*/remove_id", "*/remove", "*/rescan", "*/scan", "*/delete",
            "*/reset", "*/driver_override", "*/drivers_probe", "*/authorized*",
            "*/sriov_numvfs", "*/*_offline_page",
        ),
        "it affects the firmware": ("/sys/firmware/*", "*/firmware/*", "*/microcode/*"),
        "it is an interface for kernel and driver developers, without guarantees": (
            "/sys/kernel/debug/*", "/sys/kernel/tracing/*", "/sys/kernel/livepatch/*", "/sys/kernel/config/*",
            "/sys/module/*", "*/parameters/*",
        ),
    }
)  # fmt: skip
"""Reasons and patterns; ``*`` matches any text including slashes: links in /sys give a device many paths."""
_REFUSED = {
    **{f"{SYSCTL_ROOT}{pattern}": why for why, patterns in _SYSCTLS.items() for pattern in patterns},
    **{pattern: why for why, patterns in _FILES.items() for pattern in patterns},
}
_LEVERS_OWN = ("/sys/kernel/debug/sched/*", "/sys/module/haltpoll/parameters/*")
"""Developer files that levers set nevertheless."""


@dataclass(frozen=True)
class Group:
    """Name patterns refused for the same reason."""

    patterns: tuple[str, ...]
    reason: str


CONFIGURATION = Group(
    ("config_file", "data_directory", "include", "include_dir", "include_if_exists"),
    "it would load other data or an unchecked configuration, possibly with fsync = off",
)
"""These can also hide that a server is not durable."""
REFUSED = (
    CONFIGURATION,
    Group(
        ("listen_addresses", "port", "unix_socket_*", "bonjour*"),
        "a scratch server uses trust authentication and must be reachable only by its private socket",
    ),
    Group(
        ("hba_file", "ident_file", "krb_server_keyfile", "ssl_*_file", "ssl_crl_dir", "oauth_*"),
        "it controls who may connect to the server",
    ),
    Group(
        ("primary_conninfo", "primary_slot_name", "recovery_target*", "promote_trigger_file"),
        "a scratch server never replicates from another server",
    ),
    Group(("*_command", "*.command", "plperl.on_*", "pltcl*.start_proc"), "it names a program to run"),
    Group(
        ("*_library", "oauth_validator_libraries", "output_plugin_libraries", "jit_provider"),
        "it names a library that the server loads",
    ),
    Group(
        ("*_file", "*_filename", "*_directory", "*_directories", "*_dir", "*_path", "extension_destdir"),
        "it names a file or a directory",
    ),
)
"""Refused settings with reasons; the first matching group applies."""
_HARMLESS = frozenset({"search_path"})  # of schemas
_LIBRARY = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PRELOADED = {
    "shared_preload_libraries": re.compile(_LIBRARY),
    "session_preload_libraries": re.compile(_LIBRARY),
    "local_preload_libraries": re.compile(rf"(\$libdir/plugins/)?{_LIBRARY}"),
}


def why_refused(name: str, value: str) -> str | None:
    """Return why a variant may not have this setting or this value; None if it may."""
    if name in _PRELOADED:
        return _why_not_loaded(_PRELOADED[name], value)
    if name in _HARMLESS:
        return None
    return next((group.reason for group in REFUSED if belongs(name, group)), None)


def belongs(name: str, group: Group) -> bool:
    """Whether a setting belongs to a group."""
    return any(fnmatchcase(name, pattern) for pattern in group.patterns)


def _why_not_loaded(allowed: re.Pattern[str], value: str) -> str | None:
    libraries = [one.strip().strip('"') for one in value.split(",")] if value.strip() else []
    wrong = [one for one in libraries if not allowed.fullmatch(one)]
    return f'"{wrong[0]}" is not the plain name of a library' if wrong else None


def why_refused_file(path: str) -> str | None:
    """Return why no variant may set a file; None if one may. Callers check the files of levers first."""
    return next((why for pattern, why in _REFUSED.items() if fnmatchcase(path, pattern)), None)


def why_never_written(path: str) -> str | None:
    """Return why pgdyno never writes a file; None if it may. Files of levers may always be written."""
    return None if any(fnmatchcase(path, one) for one in _LEVERS_OWN) else why_refused_file(path)
