"""Settings that can lose committed data; settings, files and variables that no variant may have.

The durability lock has the safe values of the former. ``plan/engine/durability.py`` refuses all other values
in plans; ``Variant`` marks them in measurements.

Of environment variables, a variant may set those of memory allocators for its server. All others are
refused: PG* redirect connections, LD_* load code, and no other kind has been measured.

Source: glibc, mallopt(3) and ld.so(8), "GLIBC_TUNABLES"; jemalloc(3), "TUNING"; mimalloc's readme,
"Environment Options"; gperftools, docs/tcmalloc.md.

Refused settings determine where a server is, who may connect to it, or what it runs. On the command line of a
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
from dataclasses import dataclass, field
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


ENVIRONMENT = "env."
"""Prefix of a variant's keys that are environment variables."""
PRELOAD = "LD_PRELOAD"
_PRELOAD_KEY = f"{ENVIRONMENT}{PRELOAD}"

_TUNABLE = r"glibc\.(malloc\.[a-z_]+=[0-9a-zA-Z]+|pthread\.rseq=[01])"
_OPTION = r"(?!prof)[a-z_]+(:[A-Za-z0-9_.:|-]*)?"  # jemalloc writes files for options that begin with "prof"
_PLAIN = re.compile(r"[A-Za-z0-9_.:%+-]*")  # no path: some name files to write

_ALLOWED: Mapping[re.Pattern[str], tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        re.compile(PRELOAD): (
            re.compile(r"lib(jemalloc|mimalloc(-secure)?|tcmalloc(_minimal)?)\.so(\.[0-9]+)*"),
            "only a known allocator may be preloaded, by its plain name: libjemalloc.so.2",
        ),
        re.compile("GLIBC_TUNABLES"): (
            re.compile(rf"{_TUNABLE}(:{_TUNABLE})*"),
            "only tunables of glibc.malloc and glibc.pthread.rseq are valid: glibc.malloc.arena_max=2",
        ),
        re.compile(r"(JE_)?MALLOC_CONF"): (
            re.compile(rf"{_OPTION}(,{_OPTION})*"),
            "options of jemalloc are name:value; those of its profiler, which writes files, are refused",
        ),
        re.compile(
            r"MALLOC_(ARENA_MAX|ARENA_TEST|CHECK_|MMAP_MAX_|MMAP_THRESHOLD_|PERTURB_|TOP_PAD_|TRIM_THRESHOLD_)"
        ): (re.compile(r"[0-9]+"), "it must be a number"),
        re.compile(r"MIMALLOC_[A-Z0-9_]+|TCMALLOC_[A-Z0-9_]+"): (_PLAIN, "it must not be a path"),
    }
)
"""Names, permitted values, and the reason for refusing all others."""


def why_not_given(name: str, value: str) -> str | None:
    """Return why a variant may not set this environment variable; None if it may."""
    for names, (values, otherwise) in _ALLOWED.items():
        if names.fullmatch(name):
            return None if values.fullmatch(value) else otherwise
    return "only variables of memory allocators are valid: MALLOC_ARENA_MAX, GLIBC_TUNABLES, MALLOC_CONF, …"


_SPELLINGS = {"on": ("on", "true", "yes", "1"), "off": ("off", "false", "no", "0")}
WAL_LEVELS = ("minimal", "replica", "logical")
"""The values of ``wal_level``, in increasing order of the information in the WAL."""


@dataclass(frozen=True)
class Lock:
    """The safe values of one setting, the most common one first, and the risk of all others."""

    safe: tuple[str, ...]
    risk: str

    def allows(self, value: str) -> bool:
        """Whether a value is safe. An unknown spelling counts as unsafe."""
        return any(is_same_value(value, one) for one in self.safe)


def is_same_value(one: str, other: str) -> bool:
    """Whether two spellings denote the same value of a setting of the lock."""
    return _canonical(one) == _canonical(other)


def _canonical(value: str) -> str:
    folded = value.strip().lower()
    return next((name for name, spellings in _SPELLINGS.items() if folded in spellings), folded)


DURABILITY_LOCK: Mapping[str, Lock] = MappingProxyType(
    {
        "fsync": Lock(("on",), "a crash of the machine can destroy the whole cluster"),
        "full_page_writes": Lock(
            ("on",), "a crash during a write can leave torn pages that recovery cannot repair"
        ),
        "synchronous_commit": Lock(
            ("on", "remote_apply"), "a crash can lose transactions that were reported as committed"
        ),
        "wal_level": Lock(WAL_LEVELS[1:], "neither online backups nor archiving nor standbys are possible"),
        "data_checksums": Lock(("on",), "damaged pages are not detected"),
        "zero_damaged_pages": Lock(("off",), "damaged pages are silently replaced by empty ones"),
        "autovacuum": Lock(("on",), "dead rows accumulate, and transaction ids can run out"),
        "track_counts": Lock(("on",), "autovacuum has no statistics to act on and does not run"),
        "ignore_checksum_failure": Lock(("off",), "damaged pages are read as if they were intact"),
        "ignore_system_indexes": Lock(
            ("off",), "damaged system indexes are not detected, and lookups are slow"
        ),
        "ignore_invalid_pages": Lock(("off",), "recovery continues although it found damaged pages"),
        "data_sync_retry": Lock(("off",), "pages lost in a failed sync can be reported as written"),
    }
)
"""``synchronous_standby_names`` belongs to the lock too, but its safe value depends on the server."""
_CACHE_VOLATILITY_FILES = ("/write_cache", "/cache_type")
"""Ends of the paths of /sys files that can make the kernel omit flushes to a disk."""
_REDACTED = "********"
_ZFS = "/sys/module/zfs/parameters/"
_SAFE_ONLY_AS_0 = frozenset(
    f"{_ZFS}{name}" for name in ("zfs_nocacheflush", "zil_nocacheflush", "zil_replay_disable")
)
"""Any other value makes ZFS omit disk flushes, or discard its log of synchronous writes (the ZIL)."""


def is_never_applied(name: str, value: str) -> bool:
    """Whether pgdyno never sets this value on a running server, and so never has to restore it."""
    name = name.lower()
    is_locked = name in DURABILITY_LOCK or name == "synchronous_standby_names"
    return is_locked or why_refused(name, value) is not None


def unsafe_settings(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return every ``name=value`` that could lose committed data; keys are in canonical form."""
    by_lock = {name.replace("-", "_"): name for name in settings}  # PostgreSQL takes "-" for "_"
    locked = [
        by_lock[name]
        for name, lock in DURABILITY_LOCK.items()
        if name in by_lock and not lock.allows(settings[by_lock[name]])
    ]
    others = [name for name, value in settings.items() if name not in locked and _may_lose(name, value)]
    return tuple(f"{name}={settings[name]}" for name in (*locked, *others))


def _may_lose(name: str, value: str) -> bool:
    """Whether data may be lost by something other than a setting of the lock."""
    if name == _PRELOAD_KEY:
        # libeatmydata turns every fsync into a no-op. Redacted values of a bundle are not judged.
        return value != _REDACTED and why_not_given(PRELOAD, value) is not None
    if name in _SAFE_ONLY_AS_0:
        return value.strip() != "0"
    return belongs(name, CONFIGURATION) or name.endswith(_CACHE_VOLATILITY_FILES)


SYNC_FUNCTIONS = frozenset(
    {
        *("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"),
        *("open", "open64", "openat", "openat64", "write", "pwrite", "pwrite64", "pwritev", "pwritev64"),
    }
)
"""C library functions that write or flush data, or that open files, possibly with O_SYNC."""
READ_BACK = (
    *DURABILITY_LOCK,
    "synchronous_standby_names",
    *("shared_preload_libraries", "session_preload_libraries", "local_preload_libraries"),
)
"""Settings that are read back. Those outside the durability lock must not differ unless variants set them."""


@dataclass(frozen=True)
class DurabilityReading:
    """One reading from the server of a variant, in a session like those of the load.

    ``settings`` are those of ``READ_BACK`` that this version of PostgreSQL has, by name.
    ``loader`` are the postmaster's environment variables for the dynamic loader, ``LD_PRELOAD`` and the like;
    values are file names, else checksums. ``replaced`` are the functions of ``SYNC_FUNCTIONS`` that a loaded
    library overrides, by the library's name. ``unknown`` is the reason why the last two are empty, if the
    postmaster cannot be inspected.
    """

    variant: str
    settings: Mapping[str, str]
    loader: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: str = ""
