"""Client CPU time per transaction: what the load generator itself costs."""

from __future__ import annotations

from pgdyno.meters._contract import Counters, Meter, MeterContext, per_transaction
from pgdyno.meters._cpu import cpu_us

METER = Meter("client_cpu_us_per_transaction", "/proc/PID/task/TID/schedstat of the generator")


def read(context: MeterContext) -> Counters | None:
    """Return CPU microseconds used so far."""
    return cpu_us(context, context.client_pids())


value = per_transaction
