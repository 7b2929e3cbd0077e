"""WAL segments created: the creating process writes and flushes zeros while all writers wait."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext
from pgdyno.model.experiments.metric import WAL_SEGMENTS

METER = Meter(WAL_SEGMENTS, "pg_stat_io, object wal, context init, since version 18", reports_late=True)

_WRITES = """
SELECT pg_catalog.sum(writes) FROM pg_catalog.pg_stat_io
WHERE object OPERATOR(pg_catalog.=) 'wal' AND context OPERATOR(pg_catalog.=) 'init'
"""


def read(context: MeterContext) -> Counters | None:
    """Return the number of segments created so far: one write each. None before version 18."""
    if not context.has_relation("pg_stat_io"):
        return None
    (count,) = context.query(_WRITES)
    return None if count is None else (count,)


def value(delta: Counters, transactions: int) -> float:  # noqa: ARG001 — the contract's signature
    """Return the number of segments."""
    return sum(delta)
