"""Information hidden from the connected role, in words, with the necessary grant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.model.servers.guc import Guc
from pgdyno.server.connection.connection import Connection
from pgdyno.server.connection.query import require

_SUPERUSER: LiteralString = "SELECT pg_catalog.current_setting('is_superuser') = 'on'"
_QUOTED_ROLE: LiteralString = "SELECT pg_catalog.quote_ident(current_user)"
_CAN_READ_SETTINGS: LiteralString = "SELECT pg_catalog.pg_has_role('pg_read_all_settings', 'USAGE')"
_CAN_READ_STATS: LiteralString = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
_CAN_READ_BUILD: LiteralString = (
    "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_config()', 'EXECUTE')"
)

_ROLE_SOURCES = ("database", "user", "database user")
_CLIENT_SOURCES = ("client",)
_CLIENT_OWN = frozenset({"application_name", "client_encoding"})
"""Settings that belong to a connection by nature, so that nothing of the server's is hidden behind them."""


@dataclass(frozen=True)
class Privileges:
    """Read privileges of the role. ``role`` is quoted for SQL."""

    role: str
    is_superuser: bool
    can_read_settings: bool
    can_read_stats: bool
    can_read_build: bool


def read_privileges(connection: Connection) -> Privileges:
    """Query the read privileges of the connected role."""
    return Privileges(
        role=require(connection, _QUOTED_ROLE, str, "current_user"),
        is_superuser=require(connection, _SUPERUSER, bool, "is_superuser"),
        can_read_settings=require(connection, _CAN_READ_SETTINGS, bool, "pg_has_role()"),
        can_read_stats=require(connection, _CAN_READ_STATS, bool, "pg_has_role()"),
        can_read_build=require(connection, _CAN_READ_BUILD, bool, "has_function_privilege()"),
    )


def hidden_things(privileges: Privileges, settings: Mapping[str, Guc]) -> tuple[str, ...]:
    """Describe the information hidden from the role, one sentence per item."""
    return (*_hidden_by_privilege(privileges), *_hidden_by_overrides(settings.values()))


def _hidden_by_privilege(privileges: Privileges) -> list[str]:
    role = privileges.role
    hidden = []
    if not privileges.can_read_settings:
        hidden.append(
            "the file and line of each setting, and settings such as data_directory "
            f"(GRANT pg_monitor TO {role} shows them)"
        )
    if not privileges.can_read_stats:
        hidden.append(
            "the state of standbys, and the size of databases that the role may not connect to "
            f"(GRANT pg_monitor TO {role} shows them)"
        )
    if not privileges.can_read_build:
        hidden.append(
            f"how the server was built (GRANT EXECUTE ON FUNCTION pg_catalog.pg_config() TO {role} shows it)"
        )
    return hidden


def _hidden_by_overrides(settings: Collection[Guc]) -> list[str]:
    """Name settings whose server-wide value lies behind one of the role, the database or the connection."""
    hidden = []
    for sources, owner in ((_ROLE_SOURCES, "role or database"), (_CLIENT_SOURCES, "connection (PGOPTIONS)")):
        names = sorted(guc.name for guc in settings if guc.source in sources and guc.name not in _CLIENT_OWN)
        if names:
            hidden.append(f"the server-wide value of {', '.join(names)}: this {owner} sets its own")
    return hidden
