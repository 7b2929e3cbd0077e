"""Ask a server for a statement's plan.

Nothing is run: EXPLAIN alone, without ANALYZE.

Every question is a READ ONLY transaction of its own that is rolled back; settings to try are set in it with
SET LOCAL. It sees the role's own settings, and its search path or another one. PostgreSQL
itself computes immutable functions of constants while it plans, and stable ones to estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import errors

from pgdyno.base.errors import PgdynoError, PrivilegeError, ServerError, UsageError
from pgdyno.postgres.answers import answers_of_postgresql
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
    """Planner of one statement under other settings; plans are cached by settings."""

    @answers_of_postgresql()
    def __init__(
        self,
        connection: Connection,
        statement: str,
        settings: Mapping[str, Guc],
        search_path: str | None = None,
    ) -> None:
        """Take a statement, and its session's settings, whose time limits are kept where they are less.

        ``search_path`` None is the role's own. Raises: ServerError if the server has not told the limits.
        """
        self._connection = connection
        self._statement = statement
        self._search_path = search_path
        self._planned: dict[frozenset[tuple[str, str]], Mapping[str, Any]] = {}
        self._limits = {name: _at_most(settings[name], STATEMENT_TIMEOUT_S * 1000) for name in _TIMEOUTS}

    def plan(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the top node of the plan that there would be with these settings.

        Raises: UsageError if it cannot be planned as it is; PrivilegeError, ServerError,
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
            raise _not_planned(error, self._where_names_are()) from error
        return plan_of(row)

    def _where_names_are(self) -> str:
        path = (
            "the role's own search_path"
            if self._search_path is None
            else f"search_path = {self._search_path}"
        )
        return (
            f'names are looked up in database "{self._connection.info.dbname}" by {path}; dbname= in '
            "--dsn, or --dbname beside --pgdata, names another database"
        )

    def _explain(self, settings: Mapping[str, str]) -> tuple[Any, ...] | None:
        try:
            text = (_EXPLAIN + self._statement).encode(self._connection.info.encoding)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the statement has characters that {error.encoding} does not have",
                hint="PGCLIENTENCODING=UTF8 sets the encoding of the connection",
            ) from error
        with look(self._connection, {"search_path": self._search_path, **settings}):
            # A binary result takes the extended protocol, in which the server refuses several statements.
            return self._connection.execute(text, prepare=False, binary=True).fetchone()


def plan_of(row: tuple[Any, ...] | None) -> Mapping[str, Any]:
    """Return the top plan node of an EXPLAIN (FORMAT JSON) result.

    Raises: UsageError if there is no plan; ServerError if it cannot be read.
    """
    documents = row[0] if row and isinstance(row[0], list) else []
    document = documents[0] if documents else "nothing"
    if not isinstance(document, dict) or "Plan" not in document:
        raise UsageError(
            "this statement has no plan",
            detail=f"EXPLAIN says: {document}",
            hint="give the query that it runs, by itself",
        )
    return checked_plan(document["Plan"])


def _at_most(timeout: Guc, limit_ms: int) -> str:
    own_ms = int(timeout.setting)
    return str(min(own_ms, limit_ms) if own_ms else limit_ms)


def _not_planned(error: psycopg.Error, where_names_are: str) -> PgdynoError:
    """Return the error for a statement that was not planned, in the server's words."""
    said = error.diag.message_primary or str(error).strip()
    detail = "; ".join(filter(None, (said, error.diag.message_detail)))
    if isinstance(error, errors.InsufficientPrivilege):
        return PrivilegeError(
            "the role may not explain this statement",
            detail=detail,
            hint="connect as the role that runs it; EXPLAIN needs the same privileges",
        )
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return ServerError(
            "the statement was not planned in time",
            detail=detail,
            hint="its tables may be locked: pg_stat_activity and pg_locks show by whom; then try again",
        )
    if isinstance(error, errors.SyntaxError):
        return _not_parsed(error, detail)
    kind = (error.sqlstate or "")[:2]
    if kind in _OF_THE_STATEMENT:
        return UsageError(
            "the server cannot plan this statement",
            detail=detail + _place(error),
            hint=where_names_are if kind in _OF_NAMES else None,
        )
    return ServerError(
        "the server could not plan this statement", detail=f"{detail} (SQLSTATE {error.sqlstate})"
    )


def _not_parsed(error: psycopg.Error, said: str) -> UsageError:
    if error.diag.statement_position is None:  # the one error of this kind that is at no place
        return UsageError("there is more than one statement", detail=said, hint="give one at a time")
    return UsageError(
        "the statement cannot be parsed",
        detail=said + _place(error),
        hint="give one SELECT, VALUES, TABLE, WITH, CREATE TABLE AS or CREATE MATERIALIZED VIEW in quotes",
    )


def _place(error: psycopg.Error) -> str:
    position = error.diag.statement_position
    if position is None or int(position) <= len(_EXPLAIN):
        return ""
    return f", at character {int(position) - len(_EXPLAIN)}"
