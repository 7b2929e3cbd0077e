"""A session that reads rows for a sample: in one snapshot, by one process, at a limited rate.

Rows of a COPY … TO STDOUT come many at a time: to wait for each takes longer than to send it.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pgdyno.base.errors import ServerError
from pgdyno.postgres.catalogued_tables import LinkedTable
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.connection_errors import failures_in_words
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection, Settings, look
from pgdyno.postgres.process.sample_queries import locking

# Texts of values as pg_dump writes them: every server reads them alike. Policies fail instead of hiding rows,
# no worker reads beside this session, and rows come in the order in which they lie. A pooler may give the
# session another server process for each transaction: what counts is set in this one.
_SETTINGS: Settings = {
    "client_encoding": "UTF8",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "row_security": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "statement_timeout": f"{LONG_LIMIT_S:.0f}s",
    "idle_in_transaction_session_timeout": "0",
}
# Not all versions have it. What has become a view, or a table of another server, is not read.
_LATER_SETTING = """
SELECT pg_catalog.set_config(name, 'view, foreign-table', true)
FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'restrict_nonsystem_relation_kind'
"""
# These functions see the present, unlike queries of catalogues in this snapshot. A view has no file, and no
# partitioned table becomes one.
_OTHERS = """
SELECT w.name
FROM ROWS FROM (pg_catalog.unnest(%s::pg_catalog.text[]), pg_catalog.unnest(%s::pg_catalog.oid[]),
                pg_catalog.unnest(%s::pg_catalog.bool[])) AS w (name, oid, has_parts)
WHERE (pg_catalog.to_regclass(w.name)::pg_catalog.oid OPERATOR(pg_catalog.<>) w.oid) IS NOT FALSE
   OR NOT (w.has_parts OR pg_catalog.pg_relation_filenode(w.oid) IS NOT NULL)
"""
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class RowSource:
    """A session in a transaction; ``snapshot`` lets pg_dump see the same."""

    connection: ControlConnection
    snapshot: str
    bytes_per_s: float

    @classmethod
    @contextmanager
    def open(cls, dsn: str, bytes_per_s: float) -> Iterator[RowSource]:
        """Begin to read. Raises: ConnectionFailedError, ServerError."""
        with failures_in_words(), closing(connect(dsn)) as connection, look(connection, _SETTINGS):
            with failures_in_words():
                connection.execute(_LATER_SETTING)
                [[snapshot]] = connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchall()
            yield cls(connection, str(snapshot), bytes_per_s)

    def keep(self, tables: Sequence[LinkedTable]) -> None:
        """Keep the definitions of tables until the end.

        Raises: ServerError if one is being changed, or has become another relation since it was found.
        """
        if not tables:
            return
        names = [sql.Identifier(one.relation.schema, one.relation.name).as_string() for one in tables]
        found = names, [one.oid for one in tables], [one.relation.has_parts for one in tables]
        with failures_in_words():
            self.connection.execute(locking(tables))
            others = self.connection.execute(_OTHERS, found).fetchall()
        if others:
            raise ServerError(
                f"{others[0][0]} is not the table any more that it was a moment ago",
                detail="a view in its place would run functions of its owner",
                hint="nothing was copied; try again when nobody changes the schema",
            )

    def rows(self, query: sql.Composed, share: float) -> Iterator[bytes]:
        """Yield the text of a query's rows, which are about this share of those that are read for it.

        A second reads as many as have the rate's bytes. Raises: ConnectionFailedError, ServerError.
        """
        began_s, done = time.monotonic(), 0
        self.connection.answer_limit_s = LONG_LIMIT_S
        with failures_in_words():
            for block in copied_blocks(self.connection, query):
                yield block
                done += len(block)
                wait_s = done / share / self.bytes_per_s - (time.monotonic() - began_s)
                time.sleep(max(0.0, wait_s))


def copied_blocks(connection: ControlConnection, statement: sql.Composed) -> Iterator[bytes]:
    """Yield the text of the rows that a statement copies out, in blocks of whole rows. Raises: psycopg.Error.

    The connection's limits hold for each block.
    """
    with connection.cursor().copy(statement) as copy:
        while block := connection.wait(_block(copy)):
            yield block


def _block(copy: psycopg.Copy) -> Generator[Any, Any, bytes]:
    rows, size_bytes = [], 0
    while size_bytes < _BLOCK_BYTES:
        row = bytes((yield from copy._read_gen()))  # noqa: SLF001 — its public form waits for one row
        if not row:
            break
        rows.append(row)
        size_bytes += len(row)
    return b"".join(rows)
