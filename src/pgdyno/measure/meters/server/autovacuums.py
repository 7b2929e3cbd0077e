"""Tables vacuumed by autovacuum during a block."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext

METER = Meter("autovacuums", "pg_stat_all_tables, the load's database")


def read(context: MeterContext) -> Counters | None:
    """Return how often autovacuum has vacuumed a table so far, summed over the tables."""
    (count,) = context.query("SELECT pg_catalog.sum(autovacuum_count) FROM pg_catalog.pg_stat_all_tables")
    return None if count is None else (count,)


def value(delta: Counters, transactions: int) -> float:  # noqa: ARG001 — the contract's signature
    """Return the number of vacuums."""
    return sum(delta)
