"""A scratch database that a sample's rows are put into, by the role without privileges that owns it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from pgdyno.postgres.connection.connection_errors import failures_in_words
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.postgres.linked_table import Link, LinkedTable
from pgdyno.postgres.process.instance import Instance
from pgdyno.postgres.process.made_up_copy import MadeUpCopy
from pgdyno.postgres.process.sample_queries import loading, missing_keys

ReadRows = Callable[[Link, LinkedTable, Sequence[Sequence[str]]], Iterator[bytes]]
"""Yields rows that values of a foreign key refer to: a list of them for each of its columns."""

_KEYS = 5000
"""Rows that are asked for at once: arbitrary, some milliseconds of the server's."""
_SET_SEQUENCE = """
SELECT pg_catalog.setval(s.oid::pg_catalog.regclass, %s) FROM pg_catalog.pg_class s
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.relnamespace
WHERE s.relkind OPERATOR(pg_catalog.=) 'S' AND n.nspname OPERATOR(pg_catalog.=) %s
  AND s.relname OPERATOR(pg_catalog.=) %s
"""


@dataclass(frozen=True)
class SampledCopy:
    """A session of the role without privileges, with an empty search path."""

    connection: ControlConnection

    @classmethod
    def open(cls, server: Instance, database: str) -> SampledCopy:
        """Connect to a database of a scratch server. Raises: ServerError."""
        connection = MadeUpCopy.open(server, database).connection
        with failures_in_words():
            connection.execute("SET client_encoding = 'UTF8'")
        return cls(connection)

    def load(self, table: LinkedTable, blocks: Iterator[bytes]) -> int:
        """Put rows into a table; return how many. Raises: ServerError."""
        with failures_in_words(), self.connection.cursor() as cursor:
            with cursor.copy(loading(table)) as copy:
                for block in blocks:
                    copy.write(block)
            return cursor.rowcount

    def complete(self, link: Link, target: LinkedTable, read: ReadRows) -> int:
        """Add the rows that a foreign key refers to and that are not there; return how many.

        Raises: ServerError.
        """
        added = 0
        with failures_in_words(), self.connection.transaction():
            declare = sql.SQL("DECLARE pgdyno_missing NO SCROLL CURSOR FOR {}")
            self.connection.execute(declare.format(missing_keys(link)))
            fetch = sql.SQL("FETCH {} FROM pgdyno_missing").format(sql.SQL(str(_KEYS)))
            while keys := self.connection.execute(fetch).fetchall():
                columns = [[str(value) for value in column] for column in zip(*keys, strict=True)]
                added += self.load(target, read(link, target, columns))
        return added

    def set_sequences(self, last: Mapping[tuple[str, str], int]) -> None:
        """Let sequences go on where the original's do. Raises: ServerError."""
        with failures_in_words():
            for (schema, name), value in last.items():
                self.connection.execute(_SET_SEQUENCE, (value, schema, name))
