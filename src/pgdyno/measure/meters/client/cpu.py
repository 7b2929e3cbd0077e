"""Client CPU time per transaction: the cost of the load generator itself."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction

METER = Meter("client_cpu_us_per_transaction", "/proc/PID/task/TID/schedstat of the generator")


def read(context: MeterContext) -> Counters | None:
    """Return the CPU time so far, in µs, by host that issues load."""
    return context.client_cpu_us()


value = per_transaction
