"""Complete inspection of a server over one connection. Changes nothing.

A build's capabilities are never derived from its version: builds of one version differ. The queries work for
an ordinary role, for a member of pg_monitor and for a superuser. ``Server.hidden`` lists what the role may
not see.

Configuration managers are Patroni, Kubernetes operators and cloud services. Their users change settings
elsewhere: settings written by pgdyno would be overwritten, or would override the manager's forever. Only
positive evidence counts: an unrecognised server has no known manager. Sources: Patroni's
patroni/postgresql/config.py (CMDLINE_OPTIONS, the name postgresql.base.conf) and connection.py
(application_name); CloudNativePG's pkg/postgres/configuration.go (cnpg.config_sha256); for the setting
prefixes, the services' documentation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import LiteralString

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.privileges import hidden_things, read_privileges
from pgdyno.postgres.connection.query import ask, ask_rows, require
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.settings import read_overrides, read_settings
from pgdyno.postgres.sampling.planning_share import read_planning_share
from pgdyno.postgres.server import Capabilities, ConfigurationManager, Server, Standby

_CLIENTS: LiteralString = "SELECT DISTINCT application_name FROM pg_catalog.pg_stat_activity"
_PATRONI_CHANGE = "patronictl edit-config"
_PATRONI_COMMAND_LINE = frozenset(
    {"cluster_name", "max_locks_per_transaction", "track_commit_timestamp", "wal_log_hints"}
)
"""Options that Patroni always passes. Other tools rarely do, least of all together."""


@dataclass(frozen=True)
class _Service:
    """A service recognised by the prefix of its custom settings."""

    prefix: str
    name: str
    how_to_change: str


_SERVICES = (
    _Service("cnpg.", "CloudNativePG", "spec.postgresql.parameters of the Cluster resource"),
    _Service("rds.", "Amazon RDS or Aurora", "the instance's or cluster's parameter group"),
    _Service("azure.", "Azure Database for PostgreSQL", "az postgres flexible-server parameter set"),
    _Service("cloudsql.", "Google Cloud SQL", "gcloud sql instances patch --database-flags"),
    _Service("alloydb.", "Google AlloyDB", "gcloud alloydb instances update --database-flags"),
    _Service("neon.", "Neon", "the project's settings at Neon"),
)


def read_managers(connection: Connection, settings: Mapping[str, Guc]) -> tuple[ConfigurationManager, ...]:
    """Return every configuration manager with evidence on the server."""
    clients = ask_rows(connection, _CLIENTS, "pg_stat_activity").or_else(())
    return recognise(settings.values(), [name for (name,) in clients if name])


def recognise(settings: Iterable[Guc], client_names: Iterable[str]) -> tuple[ConfigurationManager, ...]:
    """Recognise managers by settings and by application names of connected clients. Pure."""
    gucs = tuple(settings)
    managers = []
    if evidence := _patroni(gucs, client_names):
        managers.append(ConfigurationManager("Patroni", evidence, _PATRONI_CHANGE))
    for service in _SERVICES:
        own = sorted(guc.name for guc in gucs if guc.name.startswith(service.prefix))
        if own:
            evidence = f"the server has the setting {own[0]}"
            managers.append(ConfigurationManager(service.name, evidence, service.how_to_change))
    return tuple(managers)


def _patroni(gucs: Collection[Guc], client_names: Iterable[str]) -> str | None:
    """Return the evidence that Patroni manages the server, or None."""
    for guc in gucs:
        if guc.sourcefile and PurePath(guc.sourcefile).name == "postgresql.base.conf":
            return f"{guc.name} comes from {guc.sourcefile}"
    for name in client_names:
        if name.startswith("Patroni"):
            return f'a client has the application name "{name}"'
    on_command_line = {guc.name for guc in gucs if guc.source == "command line"}
    if on_command_line >= _PATRONI_COMMAND_LINE:
        return f"{', '.join(sorted(_PATRONI_COMMAND_LINE))} are set on the command line"
    return None


_BACKEND_START: LiteralString = """
    SELECT pg_catalog.date_part('epoch', backend_start)::pg_catalog.float8
      FROM pg_catalog.pg_stat_activity WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()"""
_VERSION = re.compile(r"\d+[A-Za-z0-9 ._+~:,()/@-]{0,200}", re.ASCII)
"""A number, with additions by packagers and forks (configure --with-extra-version)."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[/\\]")
"""The start of an absolute path on Unix and on Windows."""
_SHARED_MEMORY: LiteralString = (
    "SELECT pg_catalog.sum(allocated_size)::pg_catalog.int8 FROM pg_catalog.pg_shmem_allocations"
)
_SEGMENTS_MADE: LiteralString = """
    SELECT pg_catalog.sum(writes)::pg_catalog.int8 FROM pg_catalog.pg_stat_io
     WHERE object OPERATOR(pg_catalog.=) 'wal' AND context OPERATOR(pg_catalog.=) 'init'"""
_WAL_IN_PG_STAT_IO = 180_000
_SHOWN = 200  # characters of an invalid value; arbitrary
_JIT: LiteralString = """
    SELECT CASE WHEN pg_catalog.set_config('jit', 'on', true) OPERATOR(pg_catalog.=) 'on'
                THEN pg_catalog.pg_jit_available() END"""
_CONFIGURE: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config() WHERE name OPERATOR(pg_catalog.=) 'CONFIGURE'"
)
_CFLAGS: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_config() WHERE name OPERATOR(pg_catalog.=) 'CFLAGS'"
)
_SWITCHES = frozenset({"on", "off"})
_SIZES: LiteralString = """
    SELECT datname,
           CASE WHEN pg_catalog.has_database_privilege(oid, 'CONNECT')
                  OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
                THEN COALESCE(pg_catalog.pg_database_size(oid), 0) END
      FROM pg_catalog.pg_database
     ORDER BY datname"""
_WALSENDERS: LiteralString = """
    SELECT r.application_name, r.state, r.sync_state
      FROM pg_catalog.pg_stat_replication r
      LEFT JOIN pg_catalog.pg_replication_slots s ON s.active_pid OPERATOR(pg_catalog.=) r.pid
     WHERE COALESCE(s.slot_type, 'physical') OPERATOR(pg_catalog.=) 'physical'
       AND COALESCE(r.state, '') OPERATOR(pg_catalog.<>) 'backup'
     UNION ALL
    SELECT slot_name, 'disconnected', 'unknown'
      FROM pg_catalog.pg_replication_slots
     WHERE slot_type OPERATOR(pg_catalog.=) 'physical' AND NOT active
     ORDER BY 1, 2"""


@dataclass(frozen=True)
class Backend:
    """A connection's backend; ``pid`` is the process id in the server's PID namespace."""

    pid: int
    start_s: float | None  # seconds since 1970; None: hidden from the role


@checked_results()
def inspect_server(connection: Connection) -> Server:
    """Read everything that the connected role may see. Co-location stays unknown: it needs host access.

    Raises: ServerError if a query that every role may run fails, or a result does not have PostgreSQL's form;
    ConnectionFailedError if the connection is lost.
    """
    settings = read_settings(connection)
    _check_configuration_file(settings)
    privileges = read_privileges(connection)
    return Server(
        version_num=_version_num(settings),
        version=_version(settings),
        settings=settings,
        capabilities=read_capabilities(connection, settings),
        overrides=read_overrides(connection),
        databases_bytes=read_databases_bytes(connection),
        standbys=read_standbys(connection),
        is_in_recovery=require(
            connection, "SELECT pg_catalog.pg_is_in_recovery()", bool, "pg_is_in_recovery()"
        ),
        data_directory=_data_directory(settings),
        is_superuser=privileges.is_superuser,
        hidden=hidden_things(privileges, settings),
        is_colocated=unknown("this host was not inspected", "co-location"),
        managers=read_managers(connection, settings),
        build=require(connection, "SELECT pg_catalog.version()", str, "version()"),
        shared_memory_bytes=ask(connection, _SHARED_MEMORY, int, "pg_shmem_allocations"),
        planning=read_planning_share(connection, settings),
        wal_segments_made=_wal_segments_made(connection, settings),
    )


def _wal_segments_made(connection: Connection, settings: Mapping[str, Guc]) -> Fact[int]:
    """Return how many segments were created; pg_stat_io counts one write for each."""
    if _version_num(settings) < _WAL_IN_PG_STAT_IO:
        return unknown(f"PostgreSQL {_version(settings)} does not count it", "pg_stat_io")
    return ask(connection, _SEGMENTS_MADE, int, "pg_stat_io")


def identify_backend(connection: Connection) -> Backend:
    """Return the identity of the connection's backend, by which it can be found on its host.

    The server reports the pid: through a pooler, libpq would return the pooler's.
    """
    return Backend(
        pid=require(connection, "SELECT pg_catalog.pg_backend_pid()", int, "pg_backend_pid()"),
        start_s=ask(connection, _BACKEND_START, float, "pg_stat_activity.backend_start").or_none(),
    )


def _version_num(settings: Mapping[str, Guc]) -> int:
    value = _value(settings, "server_version_num")
    if not (value.isascii() and value.isdigit()):
        raise _not_postgresql("server_version_num", value, "PostgreSQL reports an integer, such as 180006")
    return int(value)


def _version(settings: Mapping[str, Guc]) -> str:
    """Return the version, restricted to characters that need no quoting; its form is not restricted."""
    value = _value(settings, "server_version")
    if not _VERSION.fullmatch(value):
        raise _not_postgresql("server_version", value, "PostgreSQL reports 18.6 or 18.6 (Debian 18.6-1)")
    return value


def _check_configuration_file(settings: Mapping[str, Guc]) -> None:
    """Check that it is an absolute path, hidden from this role, or empty. Raises: ServerError."""
    guc = settings.get("config_file")
    if guc is None or not guc.setting:
        return
    if not (_ABSOLUTE.match(guc.setting) and guc.setting.isprintable()):
        raise _not_postgresql("config_file", guc.setting, "PostgreSQL reports an absolute path")


def _value(settings: Mapping[str, Guc], name: str) -> str:
    guc = settings.get(name)
    return "" if guc is None else guc.setting


def _not_postgresql(name: str, value: str, usual: str) -> ServerError:
    shown = ascii(value[:_SHOWN])[1:-1]
    return ServerError(
        f'the server reports an invalid value for "{name}": "{shown}"',
        detail=usual,
        hint="connect to the server directly if there is a proxy in between",
    )


def _data_directory(settings: Mapping[str, Guc]) -> Fact[str]:
    source = "pg_settings.setting of data_directory"
    if (guc := settings.get("data_directory")) is None:
        return Fact(Unknown("only members of pg_read_all_settings and superusers see it"), source)
    return Fact(guc.setting, source)


def read_capabilities(connection: Connection, settings: Mapping[str, Guc]) -> Capabilities:
    """Return the build's capabilities, from the allowed values of settings and from functions."""
    return Capabilities(
        io_methods=_choices(settings, "io_method"),
        wal_compression_methods=_wal_compression(settings),
        has_jit=_jit(connection),
        has_ssl=_ssl(settings),
        build_flags=_build(connection, _CONFIGURE, "pg_config() CONFIGURE"),
        compiler_flags=_build(connection, _CFLAGS, "pg_config() CFLAGS"),
    )


def _choices(settings: Mapping[str, Guc], name: str) -> Fact[tuple[str, ...]]:
    """Return an enum's values except on and off; empty if the setting does not exist."""
    guc = settings.get(name)
    values = () if guc is None else tuple(value for value in guc.enumvals if value not in _SWITCHES)
    return Fact(values, f"pg_settings.enumvals of {name}")


def _wal_compression(settings: Mapping[str, Guc]) -> Fact[tuple[str, ...]]:
    guc = settings.get("wal_compression")
    if guc is not None and guc.vartype == "bool":
        # Before 15 the setting was a Boolean, and "on" meant pglz.
        return Fact(("pglz",), "pg_settings.vartype of wal_compression")
    return _choices(settings, "wal_compression")


def _jit(connection: Connection) -> Fact[bool]:
    """Query with jit = on for this statement: pg_jit_available() also returns false if jit is off."""
    return ask(connection, _JIT, bool, "pg_jit_available()")


def _ssl(settings: Mapping[str, Guc]) -> Fact[bool]:
    library = settings.get("ssl_library")
    source = "pg_settings.setting of ssl_library"
    if library is None:
        return Fact(Unknown("the server has no such setting"), source)
    return Fact(library.setting != "", source)


def _build(connection: Connection, sql: LiteralString, source: str) -> Fact[str]:
    flags = ask(connection, sql, str, source)
    if flags.or_none() in ("", "not recorded"):
        return Fact(Unknown("not recorded in the build"), source)
    return flags


def read_databases_bytes(connection: Connection) -> Fact[int]:
    """Return the total size of all databases; unknown if the role may not see one of them.

    A partial sum would be misleading.
    """
    rows = ask_rows(connection, _SIZES, "sum of pg_database_size()")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    hidden = [name for name, size_bytes in rows.value if size_bytes is None]
    if hidden:
        return Fact(Unknown(f"the role may not see the size of {', '.join(hidden)}"), rows.source)
    return Fact(sum(size_bytes for _, size_bytes in rows.value), rows.source)


def read_standbys(connection: Connection) -> Fact[tuple[Standby, ...]]:
    """Return physical standbys: connected ones, and inactive physical slots, which a standby may use again.

    Base backups and logical subscribers do not count. Every role can see that a WAL sender exists, but not
    its state.
    """
    rows = ask_rows(connection, _WALSENDERS, "pg_stat_replication, pg_replication_slots")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    if any(state is None for _, state, _ in rows.value):
        reason = f"WAL senders exist ({len(rows.value)}), but the role may not see their activity"
        return Fact(Unknown(reason), rows.source)
    return Fact(tuple(Standby(*row) for row in rows.value), rows.source)
