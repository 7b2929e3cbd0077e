"""Read every setting of a server: ``pg_settings`` and the per-role and per-database settings."""

from __future__ import annotations

from typing import LiteralString

from pgdyno.model.errors import ServerError
from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.guc import Guc
from pgdyno.model.server import SettingOverride
from pgdyno.server.connection import Connection, without_session_limits
from pgdyno.server.query import Row, ask_rows
from pgdyno.server.redaction import redacted

_SETTINGS: LiteralString = """
    SELECT name, setting, unit, vartype, context, source, boot_val, reset_val, min_val, max_val,
           enumvals, sourcefile, sourceline, pending_restart
      FROM pg_catalog.pg_settings"""
_OVERRIDES: LiteralString = """
    SELECT r.rolname, d.datname, c.setting
      FROM pg_catalog.pg_db_role_setting s
      LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
      LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
     CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c(setting)
     ORDER BY r.rolname NULLS FIRST, d.datname NULLS FIRST, c.setting"""


def read_settings(connection: Connection) -> dict[str, Guc]:
    """Return all settings that the role may see, by name, as a session finds them; secrets are redacted.

    Raises: ServerError if the server does not show its settings.
    """
    with without_session_limits(connection):
        rows = ask_rows(connection, _SETTINGS, "pg_settings")
    if isinstance(rows.value, Unknown):
        raise ServerError("the server does not show its settings", detail=rows.value.reason)
    return {guc.name: guc for guc in map(_guc, rows.value)}


def read_overrides(connection: Connection) -> Fact[tuple[SettingOverride, ...]]:
    """Return what ALTER ROLE … SET and ALTER DATABASE … SET have stored; secrets are redacted."""
    rows = ask_rows(connection, _OVERRIDES, "pg_db_role_setting")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    return Fact(tuple(_override(row) for row in rows.value), rows.source)


def _guc(row: Row) -> Guc:
    name, setting, unit, vartype, context, source, boot_val, reset_val, *rest = row
    min_val, max_val, enumvals, sourcefile, sourceline, pending_restart = rest
    return Guc(
        name=name,
        setting=_shown(name, vartype, setting) or "",
        unit=unit,
        vartype=vartype,
        context=context,
        source=source,
        boot_val=_shown(name, vartype, boot_val),
        reset_val=_shown(name, vartype, reset_val),
        min_val=min_val,
        max_val=max_val,
        enumvals=tuple(enumvals or ()),
        sourcefile=sourcefile,
        sourceline=sourceline,
        pending_restart=pending_restart,
    )


def _shown(name: str, vartype: str, value: str | None) -> str | None:
    return redacted(name, value) if value is not None and vartype == "string" else value


def _override(row: Row) -> SettingOverride:
    role, database, text = row
    name, _, value = text.partition("=")
    return SettingOverride(role=role, database=database, name=name, value=redacted(name, value))
