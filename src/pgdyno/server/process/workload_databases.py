"""Databases that pgdyno creates on a user's server to load it, and drops again.

Each carries a comment. Only databases with that comment are ever dropped; a name that is taken by another
one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.model.errors import RefusedError, ServerError
from pgdyno.server.connection.connection import Connection, connect, without_session_limits
from pgdyno.server.connection.control_connection import LONG_LIMIT_S

MARK = "made by pgdyno for measuring; may be dropped"
_OURS = """
SELECT d.datname FROM pg_catalog.pg_database d
WHERE pg_catalog.shobj_description(d.oid, 'pg_database') OPERATOR(pg_catalog.=) %s ORDER BY d.datname
"""
_HAS_PREWARM = """
SELECT 1 FROM pg_catalog.pg_available_extensions
WHERE name = 'pg_prewarm' AND current_setting('is_superuser')::bool
"""


@dataclass(frozen=True)
class WorkloadDatabases:
    """Workload databases on the server behind a connection string."""

    dsn: str

    def create(self, name: str) -> None:
        """Make an empty database. Raises: RefusedError if the name is taken, ServerError."""
        self._make(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)), name)

    def copy(self, template: str, name: str) -> None:
        """Make a database as a copy of another one; an earlier copy of ours is replaced."""
        if name in self.ours():
            self._drop(name)
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._make(command.format(sql.Identifier(name), sql.Identifier(template)), name)

    def finish_load(self, name: str) -> None:
        """Vacuum and analyse a loaded database; add pg_prewarm if available to the role."""
        with self._session(name) as connection:
            if connection.execute(_HAS_PREWARM).fetchone():
                connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            connection.execute("VACUUM (FREEZE, ANALYZE)")

    def ours(self) -> list[str]:
        """Return the names of all databases that pgdyno has made here, and not yet dropped."""
        with self._session() as connection:
            return [name for (name,) in connection.execute(_OURS, (MARK,)).fetchall()]

    def drop_all(self) -> None:
        """Drop every database that pgdyno has made here, also one that a killed pgdyno has left."""
        for name in self.ours():
            self._drop(name)

    def _make(self, command: sql.Composed, name: str) -> None:
        comment = sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(MARK))
        with self._session() as connection:
            try:
                connection.execute(command)
            except psycopg.errors.DuplicateDatabase as error:
                raise RefusedError(
                    f'the server has a database "{name}" that pgdyno has not made',
                    hint="rename it, or leave out --allow-load to measure on scratch servers",
                ) from error
            connection.execute(comment)

    def _drop(self, name: str) -> None:
        with self._session() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def _session(self, database: str | None = None) -> Iterator[Connection]:
        dsn = self.dsn if database is None else make_conninfo(self.dsn, dbname=database)
        with connect(dsn, is_read_only=False) as connection:
            connection.answer_limit_s = LONG_LIMIT_S
            try:
                with without_session_limits(connection, is_read_only=False):
                    yield connection
            except psycopg.Error as error:
                if isinstance(error, psycopg.errors.DuplicateDatabase):
                    raise
                raise ServerError(
                    "the server refused to prepare for load",
                    detail=str(error).strip(),
                    hint="loading takes a role that may create databases",
                ) from error
