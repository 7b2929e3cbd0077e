"""Privileges of the connected role: those it lacks for inspection, and those unsafe with untrusted code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.base.errors import RefusedError
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.query import require
from pgdyno.postgres.guc import Guc

_SUPERUSER: LiteralString = "SELECT pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'"
_QUOTED_ROLE: LiteralString = "SELECT pg_catalog.quote_ident(current_user)"
_CAN_READ_SETTINGS: LiteralString = "SELECT pg_catalog.pg_has_role('pg_read_all_settings', 'USAGE')"
_CAN_READ_STATS: LiteralString = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
_CAN_READ_BUILD: LiteralString = (
    "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_config()', 'EXECUTE')"
)

# Roles that the session can SET ROLE to count even without INHERIT, and so does the authenticated role, which
# code can restore after a SET SESSION AUTHORIZATION. A superuser needs no further description.
_POWERS: LiteralString = """
    SELECT r.rolname, r.rolname OPERATOR(pg_catalog.=) session_user, r.rolsuper, r.rolreplication
      FROM pg_catalog.pg_roles r
     WHERE (r.rolsuper OR r.rolreplication OR (r.rolcreaterole AND %s)
            OR r.rolname OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.name[]))
       AND (pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
            OR pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER')
            OR pg_catalog.pg_has_role((
                SELECT a.usesysid FROM pg_catalog.pg_stat_activity a
                 WHERE a.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()), r.oid, 'MEMBER'))
     ORDER BY r.rolsuper DESC, r.rolname OPERATOR(pg_catalog.=) session_user DESC, r.rolname LIMIT 1"""
_POWERFUL = ["pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"]
_CREATEROLE_IS_LIMITED_SINCE = 160_000  # before, CREATEROLE could grant itself any role except superusers

_ROLE_SOURCES = ("database", "user", "database user")
_CLIENT_SOURCES = ("client",)
_CLIENT_OWN = frozenset({"application_name", "client_encoding"})
"""Settings that clients normally set per connection: they hide no server-wide value of interest."""


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


def require_powerless(connection: Connection, deed: str) -> None:
    """Refuse a role with privileges that untrusted code could use to break out of the database.

    ``deed`` is the server's action on statements, tables and types of other users. While PostgreSQL plans,
    casts and compares, it runs their functions, which can undo a SET ROLE.
    Raises: RefusedError, ServerError.
    """
    power, info = power_of(connection), connection.info
    if power is None:
        return
    raise RefusedError(
        f'role "{info.user}" {power}',
        detail=f"{deed} with its rights, which functions created by other roles could then use",
        hint="connect as the application's role: "
        f"--dsn 'host={info.host} port={info.port} dbname={info.dbname} user=…'",
    )


@checked_results()
def power_of(connection: Connection) -> str | None:
    """Return a description of the connected role's rights beyond the database; None if it has none.

    Raises: ServerError.
    """
    may_make_itself = connection.info.server_version < _CREATEROLE_IS_LIMITED_SINCE
    with server_errors_converted():
        found = connection.execute(_POWERS, (may_make_itself, _POWERFUL)).fetchall()
    if not found:
        return None
    [[name, is_itself, is_superuser, is_replicating]] = found
    if is_superuser:
        return "is a superuser" if is_itself else f'can become "{name}", a superuser'
    if name in _POWERFUL:
        return f"is a member of {name}"
    has = "REPLICATION" if is_replicating else "CREATEROLE"
    return f"has {has}" if is_itself else f'can become "{name}", which has {has}'


def hidden_things(privileges: Privileges, settings: Mapping[str, Guc]) -> tuple[str, ...]:
    """Return one sentence per kind of information that is hidden from the role."""
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
    """Name settings with a server-wide value that the role, the database or the connection overrides."""
    hidden = []
    for sources, owner in ((_ROLE_SOURCES, "role or database"), (_CLIENT_SOURCES, "connection (PGOPTIONS)")):
        names = sorted(guc.name for guc in settings if guc.source in sources and guc.name not in _CLIENT_OWN)
        if names:
            hidden.append(f"the server-wide value of {', '.join(names)}: this {owner} sets its own")
    return hidden
