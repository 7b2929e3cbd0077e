"""Get a statement's plan from the server.

The statement is not executed: EXPLAIN without ANALYZE. But during planning PostgreSQL evaluates immutable
functions of constants, and stable functions for estimates.

Each EXPLAIN runs in a separate READ ONLY transaction, which is rolled back. Settings to try are set in it
with SET LOCAL; otherwise the role's settings apply, with its search path or a given one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import errors

from pgdyno.base.errors import PgdynoError, PrivilegeError, ServerError, UsageError
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import connection_lost
from pgdyno.postgres.connection.control_connection import STATEMENT_TIMEOUT_S, look
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.plan_document import checked_plan

_EXPLAIN = "EXPLAIN (FORMAT JSON, VERBOSE) "
_OF_NAMES = frozenset({"42", "3F"})  # classes of SQLSTATE
_OF_THE_STATEMENT = _OF_NAMES | {"22", "0A", "26"}  # data, features, prepared statements
_TIMEOUTS = ("statement_timeout", "lock_timeout")


class Planner:
    """Plans one statement under different settings; plans are cached by settings."""

    @checked_results()
    def __init__(
        self,
        connection: Connection,
        statement: str,
        settings: Mapping[str, Guc],
        search_path: str | None = None,
    ) -> None:
        """Prepare to plan a statement. Timeouts in the session's ``settings`` are kept if they are shorter.

        ``search_path`` None: the role's own. Raises: ServerError if ``settings`` lacks the timeouts.
        """
        self._connection = connection
        self._statement = statement
        self._search_path = search_path
        self._planned: dict[frozenset[tuple[str, str]], Mapping[str, Any]] = {}
        self._limits = {name: _at_most(settings[name], STATEMENT_TIMEOUT_S * 1000) for name in _TIMEOUTS}

    def plan(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the top node of the plan under these settings.

        Raises: UsageError if the statement cannot be planned; PrivilegeError, ServerError,
        ConnectionFailedError.
        """
        key = frozenset(settings.items())
        if key not in self._planned:
            self._planned[key] = self._plan(settings)
        return self._planned[key]

    def _plan(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            row = self._explain({**self._limits, **settings})
        except psycopg.Error as error:
            if self._connection.closed:
                raise connection_lost(str(error)) from error
            raise _not_planned(error, self._name_lookup()) from error
        return plan_of(row)

    def _name_lookup(self) -> str:
        path = (
            "the role's own search_path"
            if self._search_path is None
            else f"search_path = {self._search_path}"
        )
        return (
            f'names are looked up in database "{self._connection.info.dbname}" with {path}; choose another '
            "database by dbname= in --dsn, or by --dbname with --pgdata"
        )

    def _explain(self, settings: Mapping[str, str]) -> tuple[Any, ...] | None:
        try:
            text = (_EXPLAIN + self._statement).encode(self._connection.info.encoding)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the statement contains characters that {error.encoding} cannot represent",
                hint="PGCLIENTENCODING=UTF8 sets the encoding of the connection",
            ) from error
        with look(self._connection, {"search_path": self._search_path, **settings}):
            # A binary result requires the extended protocol, which rejects multiple statements.
            return self._connection.execute(text, prepare=False, binary=True).fetchone()


def plan_of(row: tuple[Any, ...] | None) -> Mapping[str, Any]:
    """Return the top plan node of an EXPLAIN (FORMAT JSON) result.

    Raises: UsageError if there is no plan; ServerError if the plan is malformed.
    """
    documents = row[0] if row and isinstance(row[0], list) else []
    document = documents[0] if documents else "nothing"
    if not isinstance(document, dict) or "Plan" not in document:
        raise UsageError(
            "this statement has no plan",
            detail=f"EXPLAIN returned: {document}",
            hint="specify only the query that it runs",
        )
    return checked_plan(document["Plan"])


def _at_most(timeout: Guc, limit_ms: int) -> str:
    own_ms = int(timeout.setting)
    return str(min(own_ms, limit_ms) if own_ms else limit_ms)


def _not_planned(error: psycopg.Error, name_lookup: str) -> PgdynoError:
    """Return the error for a statement that the server did not plan, with the server's message."""
    message = error.diag.message_primary or str(error).strip()
    detail = "; ".join(filter(None, (message, error.diag.message_detail)))
    if isinstance(error, errors.InsufficientPrivilege):
        return PrivilegeError(
            "the role may not explain this statement",
            detail=detail,
            hint="connect as the role that runs the statement; EXPLAIN requires the same privileges",
        )
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return ServerError(
            "the statement was not planned in time",
            detail=detail,
            hint="its tables may be locked; see pg_stat_activity and pg_locks, then try again",
        )
    if isinstance(error, errors.SyntaxError):
        return _not_parsed(error, detail)
    kind = (error.sqlstate or "")[:2]
    if kind in _OF_THE_STATEMENT:
        return UsageError(
            "the server cannot plan this statement",
            detail=detail + _place(error),
            hint=name_lookup if kind in _OF_NAMES else None,
        )
    return ServerError(
        "the server could not plan this statement", detail=f"{detail} (SQLSTATE {error.sqlstate})"
    )


def _not_parsed(error: psycopg.Error, message: str) -> UsageError:
    if error.diag.statement_position is None:  # the only error of this class without a position
        return UsageError("there is more than one statement", detail=message, hint="specify a single one")
    return UsageError(
        "the statement cannot be parsed",
        detail=message + _place(error),
        hint="specify one SELECT, VALUES, TABLE, WITH, CREATE TABLE AS or CREATE MATERIALIZED VIEW in quotes",
    )


def _place(error: psycopg.Error) -> str:
    position = error.diag.statement_position
    if position is None or int(position) <= len(_EXPLAIN):
        return ""
    return f", at character {int(position) - len(_EXPLAIN)}"
