"""A session that reads rows for a sample: in one snapshot, without parallel workers, at a limited rate.

Rows of a COPY … TO STDOUT are received in blocks: waiting for each row takes longer than sending it.
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
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection, Settings, look
from pgdyno.postgres.process.sample_queries import locking, unconverted

# Value formats as in pg_dump, which every server reads alike. Row security policies raise errors instead of
# hiding rows, no parallel workers run, and rows come in physical order. The settings are per transaction,
# because a pooler may use a different backend for each transaction.
_SETTINGS: Settings = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "row_security": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "statement_timeout": f"{LONG_LIMIT_S:.0f}s",
    "idle_in_transaction_session_timeout": "0",
}
# Not all versions have it. A relation replaced by a view or a foreign table is then not read.
_LATER_SETTING = """
SELECT pg_catalog.set_config(name, 'view, foreign-table', true)
FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'restrict_nonsystem_relation_kind'
"""
# These functions see the current state, unlike catalog queries in this snapshot. A view has no relfilenode,
# and a partitioned table cannot become a view.
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
    """A session in a transaction; ``snapshot`` is its exported snapshot, for pg_dump."""

    connection: ControlConnection
    snapshot: str
    bytes_per_s: float

    @classmethod
    @contextmanager
    def open(cls, dsn: str, bytes_per_s: float) -> Iterator[RowSource]:
        """Provide a session with a new snapshot. Raises: ConnectionFailedError, ServerError."""
        with server_errors_converted(), closing(connect(dsn)) as connection, look(connection, _SETTINGS):
            with server_errors_converted():
                connection.execute(_LATER_SETTING)
                [[snapshot]] = connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchall()
            yield cls(connection, str(snapshot), bytes_per_s)

    def keep(self, tables: Sequence[LinkedTable]) -> None:
        """Lock tables against changes of their definition, until the end of the transaction.

        Raises: ServerError if one is being changed, or was replaced since it was found in the catalogs.
        """
        if not tables:
            return
        names = [sql.Identifier(one.relation.schema, one.relation.name).as_string() for one in tables]
        found = names, [one.oid for one in tables], [one.relation.has_parts for one in tables]
        with server_errors_converted():
            self.connection.execute(locking(tables))
            others = self.connection.execute(_OTHERS, found).fetchall()
        if others:
            raise ServerError(
                f"{others[0][0]} was replaced by a different relation",
                detail="a view in its place could run its owner's functions",
                hint="nothing was copied; try again when the schema is not being changed",
            )

    def rows(self, query: sql.Composed, share: float) -> Iterator[bytes]:
        """Yield the COPY text of a query's rows. ``share`` is the approximate share of read rows it returns.

        ``bytes_per_s`` limits the bytes of all rows read. Raises: ConnectionFailedError, ServerError.
        """
        began_s, done = time.monotonic(), 0
        self.connection.answer_limit_s = LONG_LIMIT_S
        with server_errors_converted():
            for block in copied_blocks(self.connection, unconverted(query, self.connection)):
                yield block
                done += len(block)
                wait_s = done / share / self.bytes_per_s - (time.monotonic() - began_s)
                time.sleep(max(0.0, wait_s))


def copied_blocks(connection: ControlConnection, statement: sql.Composed) -> Iterator[bytes]:
    """Yield the output of a COPY … TO STDOUT statement, in blocks of whole rows. Raises: psycopg.Error.

    The connection's limits apply to each block.
    """
    with connection.cursor().copy(statement) as copy:
        while block := connection.wait(_block(copy)):
            yield block


def _block(copy: psycopg.Copy) -> Generator[Any, Any, bytes]:
    rows, size_bytes = [], 0
    while size_bytes < _BLOCK_BYTES:
        row = bytes((yield from copy._read_gen()))  # noqa: SLF001 — the public method waits for each row
        if not row:
            break
        rows.append(row)
        size_bytes += len(row)
    return b"".join(rows)
