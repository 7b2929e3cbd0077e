"""Read planning's share of statement time from pg_stat_statements, with track_planning on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import LiteralString

from psycopg import Error, errors, sql

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import statement_failed
from pgdyno.postgres.connection.privileges import power_of
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.statements import PlanningShare

_SOURCE = "pg_stat_statements"
_TRACKED = "pg_stat_statements.track_planning"
# The owners of the extension and its schema could replace the extension's view.
_SCHEMA: LiteralString = """
    SELECT n.nspname::pg_catalog.text,
           pg_catalog.bool_and(o.rolsuper OR o.rolname OPERATOR(pg_catalog.=) session_user)
      FROM pg_catalog.pg_extension e
      JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
      JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
      JOIN pg_catalog.pg_roles o ON o.oid OPERATOR(pg_catalog.=) e.extowner
        OR o.oid OPERATOR(pg_catalog.=) CASE
           WHEN pg_catalog.pg_get_userbyid(n.nspowner) OPERATOR(pg_catalog.=) 'pg_database_owner'
           THEN d.datdba ELSE n.nspowner END
     WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements' GROUP BY n.nspname"""
_TOTALS: LiteralString = """
    SELECT pg_catalog.sum(s.plans)::pg_catalog.int8, pg_catalog.sum(s.calls)::pg_catalog.int8,
           pg_catalog.sum(s.total_plan_time), pg_catalog.sum(s.total_exec_time)
      FROM {}.pg_stat_statements s
      JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.dbid
     WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
       AND s.plans OPERATOR(pg_catalog.>) 0"""


def read_planning_share(connection: Connection, settings: Mapping[str, Guc]) -> Fact[PlanningShare]:
    """Return the totals of this database's statements that were planned at least once.

    Raises: ConnectionFailedError if the connection is lost; ServerError for unexpected errors.
    """
    tracked = settings.get(_TRACKED)
    if tracked is None:
        return unknown("pg_stat_statements is not in shared_preload_libraries", _SOURCE)
    if tracked.setting != "on":
        return unknown(f"{_TRACKED} is off", _SOURCE)
    schema = safe_schema(connection)
    if isinstance(schema, Unknown):
        return Fact(schema, _SOURCE)
    try:
        query = sql.SQL(_TOTALS).format(sql.Identifier(schema))
        row = connection.execute(query).fetchone()
    except (
        errors.InsufficientPrivilege,
        errors.QueryCanceled,
        errors.UndefinedColumn,
        errors.UndefinedTable,
    ) as error:
        return unknown(error.diag.message_primary or str(error), _SOURCE)
    except Error as error:
        raise statement_failed(error, is_closed=connection.closed) from error
    if row is None or row[0] is None:
        return unknown("no statement of this database was planned since the last reset", _SOURCE)
    return Fact(PlanningShare(*row), _SOURCE)


def safe_schema(connection: Connection) -> str | Unknown:
    """Return the extension's schema; unknown if its owner could run code with a powerful role's rights.

    Raises: ConnectionFailedError, ServerError.
    """
    found = ask_rows(connection, _SCHEMA, "pg_extension").or_else(())
    if not found:
        return Unknown("this database has no extension pg_stat_statements")
    [[schema, is_safe]] = found
    if is_safe or power_of(connection) is None:
        return str(schema)
    return Unknown(
        f'the schema "{schema}" of pg_stat_statements, or the extension, is neither this role\'s nor a '
        "superuser's: its owner could run code with this role's rights. Connect as a less privileged role "
        "in pg_read_all_stats"
    )
