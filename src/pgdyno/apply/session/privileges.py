"""Privileges needed to change settings and to undo it, checked before any change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString

from pgdyno.apply.session.query import Connection, value
from pgdyno.base.errors import PrivilegeError

_MAY_RELOAD: LiteralString = (
    "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE')"
)
_IS_SUPERUSER: LiteralString = "SELECT pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'"
_PER_PARAMETER_SINCE = 150_000  # GRANT ALTER SYSTEM ON PARAMETER


def check_privileges(connection: Connection, keys: Iterable[str]) -> None:
    """Refuse a role that may not change one of the settings or may not reload them.

    Raises: PrivilegeError naming everything that is missing, and the grants that would help.
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
            hint="connect as a superuser, or since PostgreSQL 15 give it those and pg_read_all_settings",
        )


def _may_alter(connection: Connection, key: str) -> bool:
    if connection.info.server_version < _PER_PARAMETER_SINCE:
        return False
    return value(connection, "SELECT pg_catalog.has_parameter_privilege(%s, 'ALTER SYSTEM')", bool, (key,))
