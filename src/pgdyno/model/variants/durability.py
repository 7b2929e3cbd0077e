"""The durability lock: settings that can lose committed data, and their safe values.

``plan/engine/durability.py`` refuses all other values in plans; ``Variant`` marks them in measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pgdyno.model.variants.refused_settings import CONFIGURATION, belongs, why_refused
from pgdyno.model.variants.server_environment import PRELOAD, why_not_given
from pgdyno.model.variants.variant_key import ENVIRONMENT

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
    if name == ENVIRONMENT + PRELOAD:
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
