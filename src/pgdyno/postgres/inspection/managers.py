"""Detect other managers of a server's configuration.

Patroni, a Kubernetes operator, a cloud service.

Their users change a setting elsewhere; what pgdyno wrote behind their back would be overwritten, or would
beat theirs for ever. Only positive evidence counts: an unrecognised server has no known manager.
Sources: Patroni's patroni/postgresql/config.py (CMDLINE_OPTIONS, the name postgresql.base.conf) and
connection.py (application_name); CloudNativePG's pkg/postgres/configuration.go (cnpg.config_sha256); the
setting prefixes are those that the services' own documentation names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import LiteralString

from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import ConfigurationManager

_CLIENTS: LiteralString = "SELECT DISTINCT application_name FROM pg_catalog.pg_stat_activity"
_PATRONI_CHANGE = "patronictl edit-config"
_PATRONI_COMMAND_LINE = frozenset(
    {"cluster_name", "max_locks_per_transaction", "track_commit_timestamp", "wal_log_hints"}
)
"""Options that Patroni always passes and hardly anybody else does, least of all together."""


@dataclass(frozen=True)
class _Service:
    """A service that shows itself by settings of its own."""

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
    """Return every configuration manager that left its mark on the server."""
    clients = ask_rows(connection, _CLIENTS, "pg_stat_activity").or_else(())
    return recognise(settings.values(), [name for (name,) in clients if name])


def recognise(settings: Iterable[Guc], client_names: Iterable[str]) -> tuple[ConfigurationManager, ...]:
    """Recognise managers by settings and by the names of the clients that are connected. Pure."""
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
            return f'a client calls itself "{name}"'
    on_command_line = {guc.name for guc in gucs if guc.source == "command line"}
    if on_command_line >= _PATRONI_COMMAND_LINE:
        return f"{', '.join(sorted(_PATRONI_COMMAND_LINE))} are set on the command line"
    return None
