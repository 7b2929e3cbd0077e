"""WAL written per transaction: the advance of the insert position."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction
from pgdyno.model.experiments.metric import WAL_BYTES

METER = Meter(WAL_BYTES, "pg_current_wal_insert_lsn()")

_POSITION = """
SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.pg_current_wal_insert_lsn() OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn END
"""


def read(context: MeterContext) -> Counters | None:
    """Return the insert position in bytes; None on a standby, which inserts no WAL."""
    (position,) = context.query(_POSITION)
    return None if position is None else (position,)


value = per_transaction
