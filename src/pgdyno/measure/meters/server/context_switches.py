"""Context switches of live server processes per transaction, voluntary or not.

/proc/PID/status counts only those of a process's first thread. The kernel's io_uring workers are threads of
the backends that they work for. They exit after some idle seconds, and count as last read.
"""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, number_of, per_transaction

METER = Meter("context_switches_per_transaction", "/proc/TID/status of all threads of all server processes")

_LABELS = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


def read(context: MeterContext) -> Counters | None:
    """Return the numbers of voluntary and involuntary switches so far."""
    threads = [thread for pid in context.server_pids() for thread in context.threads(pid)]
    statuses = {thread: context.read_process(thread, "status") for thread in threads}
    found = []
    for label in _LABELS:
        values = {thread: number_of(status, label) for thread, status in statuses.items()}
        by_thread = {thread: value for thread, value in values.items() if value is not None}
        if not by_thread:
            return None
        found.append(context.add_up(f"status {label}", by_thread))
    return tuple(found)


value = per_transaction
