"""Checkpoints during a block, timed and requested."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext

METER = Meter("checkpoints", "pg_stat_checkpointer, before version 17 pg_stat_bgwriter")

_COUNT = "SELECT num_timed OPERATOR(pg_catalog.+) num_requested FROM pg_catalog.pg_stat_checkpointer"
_OLD_COUNT = """
SELECT checkpoints_timed OPERATOR(pg_catalog.+) checkpoints_req FROM pg_catalog.pg_stat_bgwriter
"""


def read(context: MeterContext) -> Counters | None:
    """Return the number of checkpoints so far."""
    if context.has_relation("pg_stat_checkpointer"):
        (count,) = context.query(_COUNT)
    else:
        (count,) = context.query(_OLD_COUNT)
    return None if count is None else (count,)


def value(delta: Counters, transactions: int) -> float:  # noqa: ARG001 — the contract's signature
    """Return the number of checkpoints."""
    return sum(delta)
