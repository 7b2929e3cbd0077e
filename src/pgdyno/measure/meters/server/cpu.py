"""Server CPU time per transaction: the postmaster and all its children, including background work."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction
from pgdyno.measure.meters._cpu import cpu_us

METER = Meter("server_cpu_us_per_transaction", "CPU clocks of all server processes")


def read(context: MeterContext) -> Counters | None:
    """Return the CPU time so far, in µs."""
    return cpu_us(context, context.server_pids())


value = per_transaction
