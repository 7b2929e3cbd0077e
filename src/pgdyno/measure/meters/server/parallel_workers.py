"""Parallel workers launched, as a share of those planned; PostgreSQL counts them since version 18."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext
from pgdyno.model.experiments.metric import LAUNCHED_WORKERS

METER = Meter(LAUNCHED_WORKERS, "pg_stat_database", reports_late=True)

# Through JSON, a column that an older server lacks is NULL, not an error.
_SUMS = """
SELECT pg_catalog.sum((j OPERATOR(pg_catalog.->>) 'parallel_workers_launched')::pg_catalog.float8),
       pg_catalog.sum((j OPERATOR(pg_catalog.->>) 'parallel_workers_to_launch')::pg_catalog.float8)
FROM pg_catalog.pg_stat_database d, pg_catalog.to_jsonb(d) j
"""


def read(context: MeterContext) -> Counters | None:
    """Return the numbers of workers launched and planned so far; None before version 18."""
    launched, planned = context.query(_SUMS)
    return None if launched is None or planned is None else (launched, planned)


def value(delta: Counters, transactions: int) -> float | None:  # noqa: ARG001 — the contract's signature
    """Return the share; None if none were planned."""
    launched, planned = delta
    return launched / planned if planned else None
