"""Rows of a COPY … TO STDOUT, many at a time: to wait for each by itself takes longer than to send it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import psycopg
from psycopg import sql

from pgdyno.postgres.connection.control_connection import ControlConnection

_BLOCK_BYTES = 1 << 18


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
