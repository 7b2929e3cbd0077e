"""Read all settings of a server: ``pg_settings``, and per-role and per-database settings."""

from __future__ import annotations

from dataclasses import replace
from typing import LiteralString

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import OWN_SESSION, ReadingConnection, look
from pgdyno.postgres.connection.query import Row, ask_rows
from pgdyno.postgres.guc import RESET_SESSION_SETTINGS, SETTINGS_QUERY, Guc, guc_of
from pgdyno.postgres.secrets import redacted
from pgdyno.postgres.server import SettingOverride

_PGDYNO_SETS = ["application_name", *OWN_SESSION]
_PATIENCE_MS = 1000  # arbitrary; reading settings takes milliseconds
_OVERRIDES: LiteralString = """
    SELECT r.rolname, d.datname, c.setting,
           LEAST(CASE WHEN r.rolconnlimit OPERATOR(pg_catalog.>=) 0 AND NOT r.rolsuper
                      THEN r.rolconnlimit END,
                 CASE WHEN d.datconnlimit OPERATOR(pg_catalog.>=) 0 THEN d.datconnlimit END)
      FROM pg_catalog.pg_db_role_setting s
      LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) s.setrole
      LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.setdatabase
     CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c(setting)
     ORDER BY r.rolname NULLS FIRST, d.datname NULLS FIRST, c.setting"""


def read_settings(connection: Connection) -> dict[str, Guc]:
    """Return all settings that the role may see, by name, as in a new session; secrets are redacted.

    In a pooler's session, other clients may have changed settings; their values are ignored.
    Raises: ServerError if the settings cannot be read.
    """
    with server_errors_converted(), look(connection, {}):
        connection.execute(RESET_SESSION_SETTINGS, (_PGDYNO_SETS, connection.info.backend_pid, _PATIENCE_MS))
        # Safe under any search path: the query has no operators.
        rows = ask_rows(connection, SETTINGS_QUERY, "pg_settings")
    if isinstance(rows.value, Unknown):
        raise ServerError("could not read the server's settings", detail=rows.value.reason)
    gucs = [guc_of(row) for row in rows.value]
    if isinstance(connection, ReadingConnection):
        gucs = [guc.of_new_sessions() for guc in gucs]
    return {guc.name: _without_secrets(guc) for guc in gucs}


def read_overrides(connection: Connection) -> Fact[tuple[SettingOverride, ...]]:
    """Return the values stored by ALTER ROLE … SET and ALTER DATABASE … SET; secrets are redacted."""
    rows = ask_rows(connection, _OVERRIDES, "pg_db_role_setting")
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, rows.source)
    return Fact(tuple(_override(row) for row in rows.value), rows.source)


def _without_secrets(guc: Guc) -> Guc:
    if guc.vartype != "string":
        return guc
    return replace(
        guc,
        setting=redacted(guc.name, guc.setting),
        boot_val=None if guc.boot_val is None else redacted(guc.name, guc.boot_val),
        reset_val=None if guc.reset_val is None else redacted(guc.name, guc.reset_val),
    )


def _override(row: Row) -> SettingOverride:
    role, database, text, connection_limit = row
    name, _, value = text.partition("=")
    return SettingOverride(role, database, name, redacted(name, value), connection_limit)
