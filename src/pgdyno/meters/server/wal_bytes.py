"""WAL written per transaction: the distance the insert position moved."""

from __future__ import annotations

from pgdyno.meters._contract import Counters, Meter, MeterContext, per_transaction
from pgdyno.model.experiments.metric import WAL_BYTES

METER = Meter(WAL_BYTES, "pg_current_wal_insert_lsn()")


def read(context: MeterContext) -> Counters | None:
    """Return the position in bytes; None on a standby, which inserts no WAL."""
    (position,) = context.query(
        "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() - '0/0'::pg_lsn END"
    )
    return None if position is None else (position,)


value = per_transaction
