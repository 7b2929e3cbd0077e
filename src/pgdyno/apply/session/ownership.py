"""Ownership of settings, and the privileges to change them. Pure.

Values that others manage are not changed, and values that others would override are refused.

Precedence, lowest first: built-in default, environment variable, postgresql.conf and its includes,
postgresql.auto.conf (ALTER SYSTEM), command line, ALTER DATABASE, ALTER ROLE, the session. Everything after
ALTER SYSTEM therefore masks its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import LiteralString

from pgdyno.apply.session.query import Connection, value
from pgdyno.base.errors import OwnershipError, PrivilegeError, SettingError
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import ConfigurationManager

_MASKING = {
    "command line": "on the server's command line, which is stronger than ALTER SYSTEM",
    "environment variable": "by an environment variable of the server",
    "database": "by ALTER DATABASE … SET for this database",
    "user": "by ALTER ROLE … SET for this role",
    "database user": "by ALTER ROLE … IN DATABASE … SET",
    "global": "by ALTER ROLE ALL SET",
    "client": "by this connection's options (PGOPTIONS or the connection string)",
    "session": "by this session",
}
_MAY_RELOAD: LiteralString = (
    "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE')"
)
_IS_SUPERUSER: LiteralString = "SELECT pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'"
_PER_PARAMETER_SINCE = 150_000  # GRANT ALTER SYSTEM ON PARAMETER


def check_managers(managers: Iterable[ConfigurationManager], patroni_file: str | None = None) -> None:
    """Refuse a server whose configuration is managed by other software.

    Raises: OwnershipError with the place where its users change a setting.
    """
    found = list(managers)
    if not found and patroni_file:
        found = [
            ConfigurationManager(
                "Patroni", f"the data directory contains {patroni_file}", "patronictl edit-config"
            )
        ]
    if found:
        manager = found[0]
        raise OwnershipError(
            f"the configuration of this server is managed by {manager.name}",
            detail=f"{manager.evidence}; it would overwrite pgdyno's changes, or be overruled by them",
            hint=f"change the settings there: {manager.how_to_change}; "
            "pgdyno advise --format conf prints them",
        )


def check_settings(gucs: Mapping[str, Guc], wanted: Mapping[str, str]) -> None:
    """Refuse settings that are unknown, not accepted, or set with higher precedence.

    Raises: SettingError or OwnershipError, for all settings at once.
    """
    allow = gucs.get("allow_alter_system")  # since PostgreSQL 17
    if allow is not None and allow.setting == "off":
        raise OwnershipError(
            "this server's owner does not allow ALTER SYSTEM",
            detail="allow_alter_system is off, as set by Kubernetes operators",
            hint="give the output of pgdyno advise --format conf to whoever manages the configuration",
        )
    _raise_together([error for name, value in wanted.items() if (error := _unacceptable(gucs, name, value))])
    masked = [
        f"{name} is set {_MASKING[gucs[name].source]}" for name in wanted if gucs[name].source in _MASKING
    ]
    if masked:
        raise OwnershipError(
            f"{len(masked)} of {len(wanted)} settings are managed by others",
            detail="; ".join(masked),
            hint="remove the settings there, connect as another role, or leave them out of the plan",
        )


def _unacceptable(gucs: Mapping[str, Guc], name: str, value: str) -> SettingError | None:
    if name not in gucs:
        return SettingError(
            f'unrecognized configuration parameter "{name}"',
            hint="pgdyno inspect shows this server's settings",
        )
    if gucs[name].is_read_only:
        return SettingError(
            f'parameter "{name}" cannot be changed', detail="it was fixed by initdb or the build"
        )
    try:
        gucs[name].check(value)
    except SettingError as error:
        return error
    return None


def _raise_together(errors: list[SettingError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SettingError(
            f"the server would reject {len(errors)} of the values",
            detail="; ".join(error.message for error in errors),
        )


def check_privileges(connection: Connection, keys: Iterable[str]) -> None:
    """Refuse a role that may not change all the settings, or may not reload them.

    Raises: PrivilegeError naming all missing grants.
    """
    if value(connection, _IS_SUPERUSER, bool):
        return
    grants = [f"GRANT ALTER SYSTEM ON PARAMETER {key}" for key in keys if not _may_alter(connection, key)]
    if not value(connection, _MAY_RELOAD, bool):
        grants.append("GRANT EXECUTE ON FUNCTION pg_reload_conf()")
    if grants:
        role = value(connection, "SELECT pg_catalog.quote_ident(current_user)", str)
        raise PrivilegeError(
            f"role {role} may not change these settings",
            detail=f"it lacks: {'; '.join(grants)}",
            hint="connect as a superuser, or (since PostgreSQL 15) grant it those and pg_read_all_settings",
        )


def _may_alter(connection: Connection, key: str) -> bool:
    if connection.info.server_version < _PER_PARAMETER_SINCE:
        return False
    return value(connection, "SELECT pg_catalog.has_parameter_privilege(%s, 'ALTER SYSTEM')", bool, (key,))
