"""A running server's durability, read back from the server itself and its postmaster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.model.variants.durability import DURABILITY_LOCK

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
