"""Context switches of the server's live processes per transaction, voluntary and not."""

from __future__ import annotations

from pgdyno.meters._contract import Counters, Meter, MeterContext, per_transaction, sum_of_field

METER = Meter("context_switches_per_transaction", "/proc/PID/status of all server processes")


def read(context: MeterContext) -> Counters | None:
    """Return voluntary and involuntary switches so far."""
    voluntary = sum_of_field(context, context.server_pids(), "status", "voluntary_ctxt_switches")
    involuntary = sum_of_field(context, context.server_pids(), "status", "nonvoluntary_ctxt_switches")
    return None if voluntary is None or involuntary is None else voluntary + involuntary


value = per_transaction
