"""Step l.i1 of the Insert Benchmark in one process with psycopg: inserts and deletes of 50 rows by turns.

A stand-in for the reference client where that cannot be had. Its statements have the same text but for their
values, which are drawn from the same domains, and the smallest key is read as often. It has no queues between
processes, which cost the reference a part of its CPU time, and reads the key on the same connection.

    python -m bench.psycopg_inserts HOST PORT USER DATABASE ROWS
"""

from __future__ import annotations

import base64
import random
import sys
from datetime import UTC, datetime

import psycopg

ROWS_PER_COMMIT = 50
_RESYNC = 1001  # the smallest key is read in every so many-th round: a thousand pass in between
_RANDOM_BYTES = 3 << 20  # four MiB of base64, of which each row has a piece
_DATA_CHARACTERS = (10, 20)
_INSERT = "insert into pi1 (dateandtime,cashregisterid,customerid,productid,price,data) values "


def insert_statement(draw: random.Random, characters: str) -> str:
    """Return an insert of 50 rows with the reference's domains."""
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    rows = (
        f"('{when}',{draw.randrange(1000)},{draw.randrange(100_000)},{draw.randrange(10_000)},"
        f"{draw.randrange(500)}.00,'{data(draw, characters)}')"
        for _ in range(ROWS_PER_COMMIT)
    )
    return _INSERT + ",\n".join(rows)


def data(draw: random.Random, characters: str) -> str:
    """Return a value that ends with a random piece of ``characters``; before that it is filled with "a".

    Half of it is to be random bytes, which are three quarters of as many base64 characters.
    """
    length = draw.randint(*_DATA_CHARACTERS)
    left = int(length * 0.75 * 0.5)
    at = draw.randrange(len(characters) - left)
    return "a" * (length - left) + characters[at : at + left]


def delete_statement(oldest: int) -> str:
    """Return a delete of the 50 oldest rows from this key on."""
    return (
        "delete from pi1 where transactionid in (select transactionid from pi1 where transactionid >= "  # noqa: S608 — an integer follows
        f"{oldest} order by transactionid asc limit {ROWS_PER_COMMIT})"
    )


def main() -> None:
    """Insert and delete so many rows."""
    host, port, user, database, rows = sys.argv[1:]
    draw, oldest = random.Random(1), 0  # noqa: S311 — data, not secrets
    characters = base64.b64encode(draw.randbytes(_RANDOM_BYTES)).decode()
    with psycopg.connect(
        host=host, port=int(port), user=user, dbname=database, autocommit=True
    ) as connection:
        for number in range(int(rows) // ROWS_PER_COMMIT):
            if number % _RESYNC == 0:
                found = connection.execute("select min(transactionid) from pi1").fetchone()
                oldest = found[0] if found and found[0] is not None else 0
            connection.execute(insert_statement(draw, characters).encode())
            connection.execute(delete_statement(oldest).encode())
            oldest += ROWS_PER_COMMIT
    print("Done")


if __name__ == "__main__":
    main()
