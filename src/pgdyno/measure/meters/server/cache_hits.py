"""Shared buffer hit ratio: hits / (hits + reads from the operating system)."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext

METER = Meter("cache_hit_ratio", "pg_stat_database", reports_late=True)


def read(context: MeterContext) -> Counters | None:
    """Return the numbers of blocks hit and read so far."""
    hit, read_ = context.query(
        "SELECT pg_catalog.sum(blks_hit), pg_catalog.sum(blks_read) FROM pg_catalog.pg_stat_database"
    )
    return None if hit is None or read_ is None else (hit, read_)


def value(delta: Counters, transactions: int) -> float:  # noqa: ARG001 — the contract's signature
    """Return the ratio; 1 if no blocks were requested."""
    hit, read_ = delta
    return hit / (hit + read_) if hit + read_ else 1.0
