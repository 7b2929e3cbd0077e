"""Facts about a PostgreSQL server, read over one connection and, if co-located, on its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.statements import PlanningShare

_NOT_CONFIGURED = frozenset({"default", "override", "client", "session", "interactive"})
"""Values of ``pg_settings.source`` not from the server's configuration: built in, computed by the server, or
set by this connection."""

STANDBY_FIRST_SETTINGS = (
    "max_connections",
    "max_worker_processes",
    "max_wal_senders",
    "max_prepared_transactions",
    "max_locks_per_transaction",
)
"""With a lower value than its primary's, a standby refuses to start or pauses replay. Raise these on standbys
first, and lower them on the primary first (manual, "Hot Standby", "Administrator's Overview")."""


@dataclass(frozen=True)
class SettingOverride:
    """A per-role or per-database setting (``pg_db_role_setting``)."""

    role: str | None
    database: str | None
    name: str
    value: str
    connection_limit: int | None = None  # the smaller of the role's and the database's; None: no limit


@dataclass(frozen=True)
class Standby:
    """One row of ``pg_stat_replication``, without addresses.

    An inactive physical replication slot counts as a standby in state ``disconnected``.
    """

    application_name: str
    state: str
    sync_state: str


@dataclass(frozen=True)
class ConfigurationManager:
    """Another program that manages this server's configuration, with the evidence for it."""

    name: str  # "Patroni", "CloudNativePG", "Amazon RDS", …
    evidence: str
    how_to_change: str  # the tool or place where its users change a setting


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of this build, queried from the server, never derived from the version number."""

    io_methods: Fact[tuple[str, ...]]  # enumvals of io_method; () before 18
    wal_compression_methods: Fact[tuple[str, ...]]
    has_jit: Fact[bool]  # pg_jit_available()
    has_ssl: Fact[bool]
    build_flags: Fact[str]  # pg_config's CONFIGURE
    compiler_flags: Fact[str]


@dataclass(frozen=True)
class Atomics:
    """The number of LSE atomic instructions (since Armv8.1) in an Arm program.

    ``inline`` are in its own code. ``outline`` are in helpers that first check for LSE support and otherwise
    use a load-exclusive/store-exclusive loop. A program with neither always uses such loops.
    """

    inline: int
    outline: int


_NOT_FOUND_HERE: Fact[Any] = Fact(Unknown("the server was not found on this host"), "co-location")
_NOT_ASKED: Fact[Any] = Fact(Unknown("the server was not asked"), "pg_shmem_allocations")
_NOT_COUNTED: Fact[Any] = Fact(Unknown("the server was not asked"), "pg_stat_statements")
_NOT_READ: Fact[Any] = Fact(Unknown("the server was not asked"), "pg_stat_io")


@dataclass(frozen=True)
class Program:
    """The postmaster's executable and environment, if the server is proven to run on this host."""

    atomics: Fact[Atomics] = _NOT_FOUND_HERE
    allocator: Fact[str] = _NOT_FOUND_HERE  # malloc implementation: "glibc", "musl", "jemalloc", …
    malloc_variables: Fact[dict[str, str]] = _NOT_FOUND_HERE  # environment variables that affect malloc
    scheduling_policy: Fact[str] = _NOT_FOUND_HERE  # the kernel's name: SCHED_OTHER, SCHED_BATCH, …
    has_huge_pages: Fact[bool] = _NOT_FOUND_HERE  # explicit huge pages of any size


@dataclass(frozen=True)
class Server:
    """Everything known about one server."""

    version_num: int  # as server_version_num: 180006
    version: str
    settings: Mapping[str, Guc]
    capabilities: Capabilities
    overrides: Fact[tuple[SettingOverride, ...]]
    databases_bytes: Fact[int]
    standbys: Fact[tuple[Standby, ...]]
    is_in_recovery: bool
    data_directory: Fact[str]
    is_superuser: bool
    hidden: tuple[str, ...]  # descriptions of information hidden from the role
    is_colocated: Fact[bool]  # proven to run on the inspected host
    managers: tuple[ConfigurationManager, ...] = ()  # empty: none was recognised
    build: str = ""  # version(): platform and compiler
    program: Program = field(default_factory=Program)
    shared_memory_bytes: Fact[int] = _NOT_ASKED  # mapped size of the main segment
    planning: Fact[PlanningShare] = _NOT_COUNTED  # in the connection's database
    wal_segments_made: Fact[int] = _NOT_READ  # since the last statistics reset

    @property
    def major(self) -> int:
        """The major version: 18 for 180006."""
        return self.version_num // 10_000

    @property
    def non_default_settings(self) -> tuple[Guc, ...]:
        """Settings with an explicit value, by name, including values equal to the default."""
        configured = (guc for guc in self.settings.values() if guc.source not in _NOT_CONFIGURED)
        return tuple(sorted(configured, key=lambda guc: guc.name.lower()))


@dataclass(frozen=True)
class FileSetting:
    """A setting in a configuration file. Only a running server shows whether it is in effect."""

    name: str
    value: str
    file: str
    line: int


@dataclass(frozen=True)
class Postmaster:
    """The contents of ``postmaster.pid`` of the running postmaster."""

    pid: int
    port: int
    socket_directory: str | None
    listen_address: str | None


@dataclass(frozen=True)
class DataDirectory:
    """Facts read from a data directory's files, without a server."""

    path: str
    major: int
    owner: str
    postmaster: Fact[Postmaster]  # unknown: not running, with the reason for that conclusion
    settings: Fact[tuple[FileSetting, ...]]  # the last entry wins; postgresql.auto.conf overrides all
