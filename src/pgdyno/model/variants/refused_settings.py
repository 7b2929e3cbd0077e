"""Settings of PostgreSQL, and kernel files, that no variant may have.

Such settings say where a server is, who enters it, or what it runs. Given on the command line of a server
that pgdyno starts, they would win over its own.

Source: ``postgres --describe-config`` of 15 and 18, the documentation's chapter 20, and Debian's patches;
of extensions in contrib. Endings stand for what other versions and extensions have.

Kernel files are refused that make no server faster. A study is something that people pass on. What stands
here would turn one into a program that runs as root. Everything that is neither here nor a lever's takes
``--allow-file``.

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


@dataclass(frozen=True)
class Group:
    """Names, as patterns, that are refused for one reason."""

    patterns: tuple[str, ...]
    reason: str


CONFIGURATION = Group(
    ("config_file", "data_directory", "include", "include_dir", "include_if_exists"),
    "it would bring other data or a configuration that is unchecked, fsync = off included",
)
"""These can also hide that a server is not durable."""
REFUSED = (
    CONFIGURATION,
    Group(
        ("listen_addresses", "port", "unix_socket_*", "bonjour*"),
        "a scratch server trusts everybody who reaches it, and is reached by its private socket alone",
    ),
    Group(
        ("hba_file", "ident_file", "krb_server_keyfile", "ssl_*_file", "ssl_crl_dir", "oauth_*"),
        "it decides who may enter the server",
    ),
    Group(
        ("primary_conninfo", "primary_slot_name", "recovery_target*", "promote_trigger_file"),
        "a scratch server follows no other server",
    ),
    Group(("*_command", "*.command", "plperl.on_*", "pltcl*.start_proc"), "it names a program that is run"),
    Group(
        ("*_library", "oauth_validator_libraries", "output_plugin_libraries", "jit_provider"),
        "it names code that the server loads",
    ),
    Group(
        ("*_file", "*_filename", "*_directory", "*_directories", "*_dir", "*_path", "extension_destdir"),
        "it names a file or a directory",
    ),
)
"""What is refused and why; the first group that has a name counts."""
_HARMLESS = frozenset({"search_path"})  # of schemas
_LIBRARY = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PRELOADED = {
    "shared_preload_libraries": re.compile(_LIBRARY),
    "session_preload_libraries": re.compile(_LIBRARY),
    "local_preload_libraries": re.compile(rf"(\$libdir/plugins/)?{_LIBRARY}"),
}


def why_refused(name: str, value: str) -> str | None:
    """Return why a variant may not have this setting, or this value of it; None if it may."""
    if name in _PRELOADED:
        return _why_not_loaded(_PRELOADED[name], value)
    if name in _HARMLESS:
        return None
    return next((group.reason for group in REFUSED if belongs(name, group)), None)


def belongs(name: str, group: Group) -> bool:
    """Whether a setting is one of a group's."""
    return any(fnmatchcase(name, pattern) for pattern in group.patterns)


def _why_not_loaded(allowed: re.Pattern[str], value: str) -> str | None:
    libraries = [one.strip().strip('"') for one in value.split(",")] if value.strip() else []
    wrong = [one for one in libraries if not allowed.fullmatch(one)]
    return f'"{wrong[0]}" is not the plain name of a library' if wrong else None


def why_refused_file(path: str) -> str | None:
    """Return why no variant may set a file, or None. Levers' own files are checked before."""
    return next((why for pattern, why in _REFUSED.items() if fnmatchcase(path, pattern)), None)


def why_never_written(path: str) -> str | None:
    """Return why pgdyno writes a file for nobody, or None. Those of levers it does write."""
    return None if any(fnmatchcase(path, one) for one in _LEVERS_OWN) else why_refused_file(path)
