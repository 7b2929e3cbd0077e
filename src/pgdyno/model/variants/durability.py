"""The durability lock's one list: settings that can lose committed data, and their safe values.

``plan/engine/durability.py`` refuses whatever else is planned; ``Variant`` marks whatever else is measured.
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
"""What ``wal_level`` can be, each with everything of the one before it."""


@dataclass(frozen=True)
class Lock:
    """The safe values of one setting, the usual one first, and the risk of all others."""

    safe: tuple[str, ...]
    risk: str

    def allows(self, value: str) -> bool:
        """Whether a value is safe. A spelling that is not known counts as unsafe."""
        return any(is_same_value(value, one) for one in self.safe)


def is_same_value(one: str, other: str) -> bool:
    """Whether two values of a setting of the lock are the same, however they are spelled."""
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
        "wal_level": Lock(
            WAL_LEVELS[1:], "no backup can be taken while it runs, and neither archive nor standby follows it"
        ),
        "data_checksums": Lock(("on",), "damaged pages stay unnoticed"),
        "zero_damaged_pages": Lock(("off",), "damaged pages are silently replaced by empty ones"),
        "autovacuum": Lock(("on",), "dead rows pile up, and transaction ids can run out"),
        "track_counts": Lock(("on",), "autovacuum has no statistics to act on and does not run"),
        "ignore_checksum_failure": Lock(("off",), "damaged pages are read as if they were whole"),
        "ignore_system_indexes": Lock(
            ("off",), "damaged system indexes stay unnoticed, and lookups are slow"
        ),
        "ignore_invalid_pages": Lock(("off",), "recovery continues although it found damaged pages"),
        "data_sync_retry": Lock(("off",), "pages lost in a failed sync can be reported as written"),
    }
)
"""``synchronous_standby_names`` belongs to the lock too, but what is safe depends on the server found."""
_SAYS_WHETHER_A_CACHE_IS_VOLATILE = ("/write_cache", "/cache_type")
"""Ends of files in /sys by which the kernel is told that a disk needs no flush."""
_REDACTED = "********"
_ZFS = "/sys/module/zfs/parameters/"
_SAFE_ONLY_AS_0 = frozenset(
    f"{_ZFS}{name}" for name in ("zfs_nocacheflush", "zil_nocacheflush", "zil_replay_disable")
)
"""By these ZFS is told to flush no disk, or to throw its log of synchronous writes away."""


def is_never_applied(name: str, value: str) -> bool:
    """Whether pgdyno never gives a running server this value, so that it has none to restore either."""
    name = name.lower()
    is_locked = name in DURABILITY_LOCK or name == "synchronous_standby_names"
    return is_locked or why_refused(name, value) is not None


def unsafe_settings(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return every ``name=value`` that could lose committed data; keys are in their one form."""
    by_lock = {name.replace("-", "_"): name for name in settings}  # PostgreSQL takes "-" for "_"
    locked = [
        by_lock[name]
        for name, lock in DURABILITY_LOCK.items()
        if name in by_lock and not lock.allows(settings[by_lock[name]])
    ]
    others = [name for name, value in settings.items() if name not in locked and _may_lose(name, value)]
    return tuple(f"{name}={settings[name]}" for name in (*locked, *others))


def _may_lose(name: str, value: str) -> bool:
    """Whether data may be lost by something else than a setting of the lock."""
    if name == ENVIRONMENT + PRELOAD:
        # libeatmydata makes nothing of every fsync. Nothing is said of what a bundle does not show.
        return value != _REDACTED and why_not_given(PRELOAD, value) is not None
    if name in _SAFE_ONLY_AS_0:
        return value.strip() != "0"
    return belongs(name, CONFIGURATION) or name.endswith(_SAYS_WHETHER_A_CACHE_IS_VOLATILE)


SYNC_FUNCTIONS = frozenset(
    {
        *("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs"),
        *("open", "open64", "openat", "openat64", "write", "pwrite", "pwrite64", "pwritev", "pwritev64"),
    }
)
"""Functions of the C library by which a server puts data on disk, or asks for that when it opens a file."""
READ_BACK = (
    *DURABILITY_LOCK,
    "synchronous_standby_names",
    *("shared_preload_libraries", "session_preload_libraries", "local_preload_libraries"),
)
"""Settings that are read back. Those beyond the durability lock may not differ between variants unasked."""


@dataclass(frozen=True)
class DurabilityReading:
    """One look at the server of a variant, in a session like those of the load.

    ``settings`` holds ``READ_BACK`` by name, without those that this version of PostgreSQL does not have.
    ``loader`` has the postmaster's variables for the dynamic loader, ``LD_PRELOAD`` and the like; values are
    names of files, else checksums. ``replaced`` has the functions of ``SYNC_FUNCTIONS`` that a loaded library
    puts in place of the C library's, by the library's name. ``unknown`` says why the last two are empty where
    the postmaster cannot be looked at.
    """

    variant: str
    settings: Mapping[str, str]
    loader: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: str = ""
